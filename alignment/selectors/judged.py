"""How the judge decided on one criterion of a chat: its engine, its steps, the knowledge it was given."""

from dataclasses import dataclass
from typing import Any

from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import SnapshotItem
from evaluation.models.runs import Run, Verdict
from evaluation.selectors.steps import FINAL_ROLES, Step, verdict_steps


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step as the page shows it: the answer an advocate had to argue for, whether this step decides."""

    title: str
    model: str
    state: str
    text: str
    argued: bool | None = None
    decides: bool = False


def how_judged(run: Run, verdict: Verdict | None, criterion_id: int, *, passes_when: bool) -> dict[str, Any]:
    """The template context; without a step that decides `deciding` is empty."""
    engine = _engine(run, criterion_id)
    calls = verdict_steps(verdict) if verdict else ()
    if verdict is not None and verdict.unit_id is None:
        # An imported verdict has its rationale alone.
        steps = [ShownStep(run.judge.name, "", "", verdict.rationale, decides=True)]
    else:
        steps = [_step(step, engine, passes_when) for step in _last_of_each(calls)]
    return {
        "verdict": verdict,
        "engine": engine,
        "steps": steps,
        "deciding": [step for step in steps if step.decides],
        "calls": calls,
        "knowledge": _knowledge(run, criterion_id),
    }


def _engine(run: Run, criterion_id: int) -> str:
    """The engine of the criterion's group; '' for an imported judge."""
    asked = JudgePrompt.objects.filter(judge=run.judge, criterion=criterion_id).first()
    return str(run.judge.config["groups"][asked.group]["engine"]) if asked else ""


def _last_of_each(steps: tuple[Step, ...]) -> list[Step]:
    """A role asked twice (its answer was cut off) shows its last answer; the formatter is no step."""
    return list({step.role: step for step in steps if step.role != "formatter"}.values())


def _step(step: Step, engine: str, passes_when: bool) -> ShownStep:
    argued = {"support": passes_when, "customer": not passes_when}.get(step.role)
    decides = step.role == FINAL_ROLES.get(engine)
    return ShownStep(step.title, step.model, step.state, step.text, argued, decides)


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
