"""The body of a new certificate: a stored report, its labels and its limits."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, Min
from django.utils import timezone

from alignment.certificates.core.body import FORMAT, SPLITS, VERSION, figures, use_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.regression.queries.holdout_access import HoldoutUse, holdout_uses
from alignment.reports.queries.page import notices
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.runs import Run
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.chats import Split
from labeling.models.labels import Consensus, Label
from labeling.models.rubric import Criterion, CriterionVersion

IMPORTED = "an imported judge: its prompt, model and settings are unknown here, so changes cannot be detected"
LANGUAGES = "no claim about languages: the language of a chat is not recorded"
TOPICS = "only the topics listed here are covered"


def certificate_body(
    *,
    report: Report,
    run: Run,
    scope: Scope,
    issued_by: str,
    issued_at: datetime,
    expires_at: datetime,
    key: str,
) -> dict[str, Any]:
    """Return what is signed: texts, whole numbers, booleans, null. Constant number of queries."""
    uses = _holdout_uses(scope)
    return {
        "format": FORMAT,
        "version": VERSION,
        "software": settings.SOFTWARE,
        "judge": _judge(run.judge),
        "run": run.pk,
        "report": {
            "id": report.pk,
            "pin": report.pin,
            "policy": report.body["criteria"][0]["policy"] if report.body["criteria"] else "",
            "computed_at": report.body["generated_at"],
        },
        "labels": _labels(scope, report),
        "topics": _topics(scope),
        "languages": [],
        "criteria": _criteria(scope, run, report),
        "openings": [{"criterion": one.criterion, "times": one.times} for one in uses],
        "limits": _limits(scope, run, uses),
        "issued_by": issued_by,
        "issued_at": issued_at.isoformat(timespec="seconds"),
        "expires_at": expires_at.isoformat(timespec="seconds"),
        "key": key,
    }


def _judge(judge: Judge) -> dict[str, str]:
    return {
        "name": judge.name,
        "kind": judge.kind,
        "fingerprint": judge.fingerprint,
        "engine": judge.engine,
        "model": judge.model,
    }


def _labels(scope: Scope, report: Report) -> dict[str, Any]:
    """Return the labels behind the consensus: set, split, counts, raters and period."""
    about = {"chat__in": scope.chat_ids, "criterion__in": scope.criteria}
    labels = Label.objects.counted().filter(**about)
    counts = labels.aggregate(
        labels=Count("pk"), raters=Count("rater", distinct=True), first=Min("given_at"), last=Max("given_at")
    )
    adjudicated = Consensus.objects.filter(by=Consensus.By.ADJUDICATION, **about).count()
    period = {name: _moment(counts.pop(name)) for name in ("first", "last")}
    return {
        "set": scope.chat_set.name if scope.chat_set else None,
        "split": scope.split or None,
        "chats": report.body["chats"],
        "against": report.against,
        **counts,
        "adjudicated": adjudicated,
        **period,
    }


def _moment(value: datetime | None) -> str | None:
    return value.astimezone(timezone.get_default_timezone()).isoformat(timespec="seconds") if value else None


def _topics(scope: Scope) -> list[dict[str, Any]]:
    """Return the covered topics by name; chats without a topic are under null."""
    counts = scope.members.order_by().values_list("chat__topic__name").annotate(n=Count("pk"))
    return [{"name": name, "chats": n} for name, n in counts.order_by("chat__topic__name")]


def _criteria(scope: Scope, run: Run, report: Report) -> list[dict[str, Any]]:
    rows = {row.key: row for row in scope.criteria}
    texts = _texts(scope, run)
    return [
        _criterion(entry, rows[entry["key"]], texts[rows[entry["key"]].pk])
        for entry in report.body["criteria"]
    ]


def _criterion(entry: Mapping[str, Any], row: Criterion, text: CriterionVersion) -> dict[str, Any]:
    use, reasons = use_of(entry)
    return {
        "key": row.key,
        "dimension": entry["dimension"],
        "tier": entry["tier"],
        "critical": row.critical,
        "question": {"version": text.number, "text": text.question, "hash": text.content_hash},
        "passes_when": entry["passes_when"],
        "use": use.value,
        "status": entry["status"],
        "reasons": reasons,
        "cautions": entry["cautions"],
        **figures(entry),
    }


def _texts(scope: Scope, run: Run) -> dict[int, CriterionVersion]:
    """Return the judge's question by criterion id; for an imported judge today's question."""
    prompts = JudgePrompt.objects.filter(judge=run.judge_id).select_related("criterion_version")
    pinned = {row.criterion_id: row.criterion_version for row in prompts}
    return newest_versions(criteria=scope.criteria) | pinned


def _holdout_uses(scope: Scope) -> list[HoldoutUse]:
    """Return how often tests have used the holdout that the figures come from."""
    if scope.split not in ("", Split.HOLDOUT):
        return []
    return holdout_uses(criteria=scope.criteria, chat_set=scope.chat_set)


def _limits(scope: Scope, run: Run, uses: list[HoldoutUse]) -> list[str]:
    limits = [f"measured {SPLITS[scope.split]}", TOPICS, LANGUAGES, *notices(scope)]
    if run.judge.kind != Judge.Kind.LACE:
        limits.append(IMPORTED)
    if run.units_failed:
        limits.append(f"{run.units_failed} parts of the run failed")
    often = [f"the holdout was used {one.times} times for {one.criterion}" for one in uses if one.often]
    return limits + often
