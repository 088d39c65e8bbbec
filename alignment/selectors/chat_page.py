"""One chat of a run: transcript, labels and verdicts side by side, and how the judge decided."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from alignment.selectors.scope import Scope
from evaluation.models.prompts import SnapshotItem
from evaluation.models.runs import Run, Verdict
from evaluation.selectors.prompts import newest_versions
from evaluation.selectors.steps import Step, verdict_steps
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is known of one chat, by criterion id."""

    criteria: list[Criterion]
    versions: dict[int, CriterionVersion]
    consensus: dict[int, Consensus]
    verdicts: dict[int, Verdict]


def chat_page(*, run: Run, chat: Chat, key: str, query: str) -> dict[str, Any]:
    """The template context; `key` names the open criterion ('' = the first disagreement, else the first)."""
    scope = Scope(run.chat_set, run)
    rows = _Rows(
        criteria=scope.criteria,
        versions=newest_versions(criteria=scope.criteria),
        consensus={row.criterion_id: row for row in Consensus.objects.filter(chat=chat)},
        verdicts={row.criterion_id: row for row in Verdict.objects.filter(run=run, chat=chat)},
    )
    lines = [_line(row, rows, run, chat, query) for row in rows.criteria]
    differing = [line for line in lines if line["differ"]]
    chosen = next((line for line in lines if line["criterion"]["key"] == key), None)
    focus = chosen or (differing or lines)[0]
    return {
        "chat": {"external_id": chat.external_id, "title": chat.title, "topic": chat.topic.name},
        "messages": chat.messages,
        "rows": _by_dimension(lines),
        "headline": _headline(lines, differing),
        "focus": _focus(focus, rows, run, chat),
        "judge": run.judge,
        "run": run,
        "is_demo": chat.origin == Chat.Origin.DEMO,
    }


def human_value(consensus: Consensus | None) -> bool | None:
    """True or False where people agree on one of them."""
    return {Consensus.State.TRUE.value: True, Consensus.State.FALSE.value: False}.get(
        consensus.state if consensus else ""
    )


def _line(row: Criterion, rows: _Rows, run: Run, chat: Chat, query: str) -> dict[str, Any]:
    consensus, verdict = rows.consensus.get(row.pk), rows.verdicts.get(row.pk)
    version, human = rows.versions[row.pk], human_value(rows.consensus.get(row.pk))
    judged = verdict.value if verdict else None
    return {
        "criterion": {
            "key": row.key,
            "name": row.name,
            "question": version.question,
            "passes_when": version.passes_when,
            "url": reverse("evaluation:criterion_detail", args=[row.key]),
        },
        "id": row.pk,
        "dimension": row.dimension.name,
        "question": version.question,
        "consensus": _consensus(consensus),
        "verdict": verdict,
        "outcome": judged if human is None else human,
        "compared": human is not None and judged is not None,
        "differ": human is not None and judged is not None and human != judged,
        "url": f"{reverse('alignment:chat', args=[run.pk, chat.pk])}?criterion={row.key}{query}#focus",
    }


def _consensus(row: Consensus | None) -> dict[str, Any]:
    """State and how many of the raters agree with it."""
    if row is None:
        return {"state": "unlabelled", "raters": 0, "agreeing": 0}
    counts = {"true": row.n_true, "false": row.n_false, "na": row.n_na}
    agreeing = counts.get(row.state, max(counts.values()))
    return {"state": row.state, "raters": sum(counts.values()), "agreeing": agreeing, "by": row.by}


def _by_dimension(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(line["dimension"] for line in lines))
    return [
        {"dimension": {"name": name}, "rows": [line for line in lines if line["dimension"] == name]}
        for name in names
    ]


def _headline(lines: list[dict[str, Any]], differing: list[dict[str, Any]]) -> str:
    compared = [line for line in lines if line["compared"]]
    agree = len(compared) - len(differing)
    text = f"People and judge agree on {agree} of {len(compared)} compared criteria"
    names = [line["criterion"]["name"].lower() for line in differing]
    return f"{text} and differ on {', '.join(names)}." if names else f"{text}."


def _focus(line: dict[str, Any], rows: _Rows, run: Run, chat: Chat) -> dict[str, Any]:
    criterion_id = line["id"]
    labels = Label.objects.filter(chat=chat, criterion_id=criterion_id, state=Label.State.SUBMITTED)
    verdict = rows.verdicts.get(criterion_id)
    return {
        "criterion": line["criterion"],
        "labels": [_label(row) for row in labels.select_related("rater").order_by("rater__name")],
        "adjudication": Adjudication.objects.filter(
            chat=chat, criterion_id=criterion_id, replaced_at__isnull=True
        ).first(),
        "verdict": verdict,
        "steps": _steps(verdict, line["criterion"]["passes_when"], run),
        "calls": verdict_steps(verdict) if verdict else (),
        "knowledge": _knowledge(run, criterion_id),
    }


def _label(row: Label) -> dict[str, Any]:
    return {
        "rater": row.rater.name,
        "value": row.value,
        "rationale": row.rationale,
        "turns": sorted({place["n"] for place in row.evidence}),
        "post_reveal": row.post_reveal,
    }


def _steps(verdict: Verdict | None, passes_when: bool, run: Run) -> list[dict[str, Any]]:
    """The reasoning steps; an imported verdict has its rationale alone."""
    if verdict is None:
        return []
    if verdict.unit_id is None:
        text = verdict.rationale
        return [{"role": "import", "title": run.judge.name, "model": "", "text": text, "argued": None}]
    return [_step(step, passes_when) for step in _last_of_each(verdict_steps(verdict))]


def _last_of_each(steps: tuple[Step, ...]) -> list[Step]:
    """A role asked twice (its answer was cut off) shows its last answer; the formatter is no step."""
    return list({step.role: step for step in steps if step.role != "formatter"}.values())


def _step(step: Step, passes_when: bool) -> dict[str, Any]:
    argued = None
    if step.role in ("customer", "support"):
        argued = passes_when if step.role == "support" else not passes_when
    shown = {"role": step.role, "title": step.title, "model": step.model, "text": step.text}
    return shown | {"argued": argued}


def _knowledge(run: Run, criterion_id: int) -> list[dict[str, Any]]:
    items = SnapshotItem.objects.filter(snapshot=run.judge.snapshot_id or 0, criterion=criterion_id)
    rows = items.select_related("article_version__article").order_by("article_version__article__key")
    return [
        {
            "key": row.article_version.article.key,
            "version": row.article_version.number,
            "title": row.article_version.title,
        }
        for row in rows
    ]
