"""The provenance of a report: texts, prompts, judge, chats and answers at the time it was computed."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser

from alignment.comparison.core.codes import CriterionData, ReportData
from alignment.comparison.core.data_hash import answers_hash, chats_hash
from alignment.comparison.queries.notices import scope_notices
from alignment.comparison.queries.requested_scope import visible_scope
from alignment.comparison.queries.scope import Scope
from evaluation.judges.queries.recipes import judge_roles, judge_settings
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.chats import Topic
from labeling.models.rubric import Criterion, CriterionVersion


def report_pins(scope: Scope, data: ReportData, *, form: int) -> dict[str, Any]:
    """Return the report's `pinned`: its provenance, in a constant number of queries.

    `form` is the version of the report's JSON.
    """
    topic = Topic.objects.filter(key=scope.topic).first() if scope.topic else None
    return {
        "form": form,
        "software": settings.SOFTWARE,
        "chats": chats_hash(data.chat_ids),
        "answers": answers_hash(data, key=settings.SECRET_KEY.encode()),
        "without_holdout": sorted(scope.without_holdout),
        "for_leads": _for_leads(scope, data),
        "topic_name": topic.name if topic else None,
        "run": _run(scope.run),
        "judge": _judge(scope.run.judge, scope.run) if scope.run else None,
        "criteria": _criteria(scope, data),
        "notices": scope_notices(scope),
    }


def covered_hash(scope: Scope) -> str:
    """Return the hash of the chats that a scope covers now; one query."""
    return chats_hash(scope.members.order_by().values_list("chat__external_id", flat=True))


def _for_leads(scope: Scope, data: ReportData) -> bool:
    """Return whether users who cannot see the holdout got a report on other chats at this time."""
    others = visible_scope(replace(scope, without_holdout=frozenset()), user=AnonymousUser())
    return bool(others.without_holdout) and covered_hash(others) != chats_hash(data.chat_ids)


def _run(run: Run | None) -> dict[str, Any] | None:
    if run is None:
        return None
    ended = run.finished_at.isoformat() if run.finished_at else None
    return {"started_at": run.created_at.isoformat(), "finished_at": ended, "units_failed": run.units_failed}


def _judge(judge: Judge, run: Run) -> dict[str, Any]:
    """Return models, settings and articles of the judge; those of an imported judge are unknown."""
    return {
        "kind": judge.kind,
        "reasoning_model": judge.model,
        "formatter_model": str(judge.config.get("formatter") or judge.model),
        "knowledge": judge.snapshot.content_hash if judge.snapshot else None,
        "settings": [asdict(setting) for setting in judge_settings(judge, run)],
        "roles": [asdict(role) for role in judge_roles(judge)],
    }


def _criteria(scope: Scope, data: ReportData) -> list[dict[str, Any]]:
    rows = {row.key: row for row in scope.criteria}
    texts = _texts(scope)
    prompts = JudgePrompt.objects.filter(judge=scope.run.judge) if scope.run else JudgePrompt.objects.none()
    versions = {row.criterion_id: row.prompt_version for row in prompts.select_related("prompt_version")}
    return [
        _criterion(rows[one.spec.key], one, texts[rows[one.spec.key].pk], versions.get(rows[one.spec.key].pk))
        for one in data.criteria
    ]


def _criterion(
    row: Criterion, one: CriterionData, texts: Mapping[int, CriterionVersion], prompt: PromptVersion | None
) -> dict[str, Any]:
    """Name each question once: the judge's, the labels', and the newest."""
    questions: dict[str, CriterionVersion] = {}
    for number in (one.questions.judge, one.questions.labels, max(texts)):
        if number is not None:
            questions.setdefault(texts[number].content_hash, texts[number])
    return {
        "key": row.key,
        "name": row.name,
        "dimension": row.dimension.name,
        "critical": row.critical,
        "texts": [
            {"version": text.number, "question": text.question, "hash": text.content_hash}
            for text in questions.values()
        ],
        "prompt": prompt and {"version": prompt.number, "hash": prompt.content_hash},
    }


def _texts(scope: Scope) -> dict[int, dict[int, CriterionVersion]]:
    """Return every version by criterion id and number."""
    texts: dict[int, dict[int, CriterionVersion]] = {}
    for version in CriterionVersion.objects.filter(criterion__in=scope.criteria):
        texts.setdefault(version.criterion_id, {})[version.number] = version
    return texts
