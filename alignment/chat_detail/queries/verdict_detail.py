"""How the judge decided on one criterion of a chat: engine, steps and knowledge."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

from evaluation.core.types import Chat as CoreChat
from evaluation.core.types import Criterion as CoreCriterion
from evaluation.core.types import Tier, Windows
from evaluation.engines.core.flags import flags_in_words, place_of
from evaluation.engines.core.quotes import mark_quotes
from evaluation.engines.core.roles import ADVOCATES
from evaluation.engines.core.verdicts import read_answer, read_formatter
from evaluation.engines.core.windows import split_into_windows
from evaluation.knowledge.queries import ShownPassage, passages_of
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import ModelCall, Run, Verdict
from evaluation.prompts.core import argued_answer
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.queries.steps import FINAL_ROLES, Step, taken_from, verdict_steps
from labeling.models.chats import Chat
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """State and value of the verdict that an answer contains."""

    state: str
    value: bool | None = None


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step of an engine, as the page shows it.

    Parameters
    ----------
    argued : the answer that an advocate had to argue for, None for other roles.
    decides : whether the verdict is read from this step.
    verdict : verdict in the step's answer, None for an advocate.
    marked : whether the text contains the automatic quote marks, as the Judge read them.
    call : the model call, if there was one.
    """

    title: str
    model: str
    state: str
    text: str
    argued: bool | None = None
    decides: bool = False
    verdict: StepAnswer | None = None
    marked: bool = False
    call: Step | None = None


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """One pass of the engine: a sample of one window. `is_final`: the verdict was taken from it.

    `first` and `last` are the numbers of the window's messages.
    """

    window: int
    sample: int
    first: int
    last: int
    steps: tuple[ShownStep, ...]
    verdict: StepAnswer
    is_final: bool

    @property
    def turns(self) -> str:
        """The window's messages, in words."""
        return f"turn {self.first}" if self.first == self.last else f"turns {self.first} to {self.last}"


def verdict_detail(
    run: Run, chat: Chat, verdict: Verdict | None, criterion: Criterion, version: CriterionVersion
) -> dict[str, Any]:
    """Build the template context; `deciding` is empty if the judge stopped before its deciding step."""
    engine = _engine(run, criterion.pk)
    calls = verdict_steps(verdict) if verdict else ()
    answers = (
        _answers(run, chat, verdict, engine, calls, core_criterion(criterion, version)) if verdict else []
    )
    if verdict is not None and verdict.unit_id is None:
        # An imported verdict has only a rationale.
        steps: tuple[ShownStep, ...] = (ShownStep(run.judge.name, "", "", verdict.rationale, decides=True),)
    else:
        steps = next((answer.steps for answer in answers if answer.is_final), ())
    return {
        "verdict": verdict,
        "engine": engine,
        "steps": steps,
        "deciding": [step for step in steps if step.decides],
        "answers": answers if len(answers) > 1 else [],
        "samples": 1 + max((answer.sample for answer in answers), default=0),
        "windows": _rows_by_window(answers),
        "rule": _rule(verdict),
        "votes": _votes(verdict),
        "change": _change(verdict),
        "advocates": [role.mark for role in ADVOCATES],
        "sided_with": _sided_with(verdict),
        "flags": flags_in_words(verdict.flags) if verdict else (),
        "calls": calls,
        "retrieves": _retrieves(run) and verdict is not None and verdict.unit_id is not None,
        "passages": _passages(verdict, criterion.pk),
    }


def _engine(run: Run, criterion_id: int) -> str:
    """The engine of the criterion's group; '' for an imported judge."""
    prompt = JudgePrompt.objects.filter(judge=run.judge, criterion=criterion_id).first()
    return str(run.judge.config["groups"][prompt.group]["engine"]) if prompt else ""


def core_criterion(row: Criterion, version: CriterionVersion) -> CoreCriterion:
    """The criterion as the reader of answers needs it."""
    return CoreCriterion(
        key=row.key,
        question=version.question,
        definition=version.definition,
        tier=cast(Tier, row.tier),
        passes_when=version.passes_when,
        allow_na=version.allow_na,
        prompt="",
        articles=(),
    )


def _answers(
    run: Run, chat: Chat, verdict: Verdict, engine: str, calls: Sequence[Step], criterion: CoreCriterion
) -> list[ShownAnswer]:
    """Answers by window and sample, in order."""
    if not calls:
        return []
    parts, place = _parts(run, chat), taken_from(verdict)
    answers = []
    for (window, sample), group in groupby(calls, key=lambda step: (step.window, step.sample)):
        part = parts[window] if window < len(parts) else parts[-1]
        steps = tuple(group)
        shown = tuple(_step(step, steps, engine, criterion, part) for step in _last_of_each(steps))
        final = next((step.verdict for step in shown if step.decides and step.verdict), StepAnswer("none"))
        numbers = [message.n for message in part.messages] or [0]
        answers.append(
            ShownAnswer(
                window, sample, numbers[0], numbers[-1], shown, final, is_final=(window, sample) == place
            )
        )
    return answers


def _parts(run: Run, chat: Chat) -> tuple[CoreChat, ...]:
    """The chat as the judge read it: whole, or in windows."""
    settings, whole = run.judge.config.get("windows"), core_chat(chat)
    if not settings:
        return (whole,)
    return split_into_windows(whole, Windows(settings["tokens"], settings["overlap"], settings["rule"]))


def _last_of_each(steps: Sequence[Step]) -> list[Step]:
    """The last call of each role (a call is repeated if its answer was cut off), without the formatter."""
    return list({step.role: step for step in steps if step.role != "formatter"}.values())


def _step(
    step: Step, of_answer: Sequence[Step], engine: str, criterion: CoreCriterion, part: CoreChat
) -> ShownStep:
    stance = next((role.argues for role in ADVOCATES if role.key == step.role), None)
    advocate = stance is not None
    return ShownStep(
        title=step.title,
        model=step.model,
        state=step.state,
        text=mark_quotes(text=step.text, chat=part) if advocate else step.text,
        argued=None if stance is None else argued_answer(criterion, argues=stance),
        decides=step.role == FINAL_ROLES.get(engine),
        verdict=None if advocate else _verdict_in(step, of_answer, criterion),
        marked=advocate,
        call=step,
    )


def _verdict_in(step: Step, of_answer: Sequence[Step], criterion: CoreCriterion) -> StepAnswer:
    """The verdict in an answer: read by rules, else by the formatter, else the reason for none."""
    if step.state != ModelCall.State.ANSWERED.label:
        return StepAnswer(step.state.lower().replace(" ", "_"))
    values = read_answer(step.raw, criteria=[criterion]).values
    if criterion.key in values:
        return StepAnswer("read", values[criterion.key])
    for other in reversed(of_answer):
        if other.role == "formatter":
            formatted = read_formatter(other.raw, criteria=[criterion])
            if criterion.key in formatted:
                return StepAnswer("read", formatted[criterion.key].value)
    return StepAnswer("unparsed")


def _rows_by_window(answers: Sequence[ShownAnswer]) -> list[list[ShownAnswer]]:
    """Answers as a table of windows by samples."""
    return [list(row) for _, row in groupby(answers, key=lambda answer: answer.window)]


def _rule(verdict: Verdict | None) -> str:
    """The rule that combined the parts of a long chat: the first sentence of the verdict's explanation."""
    if verdict is None or place_of(verdict.flags, "windows") is None:
        return ""
    return f"{verdict.explanation.partition('. ')[0].rstrip('.')}."


def _votes(verdict: Verdict | None) -> list[tuple[str, int]]:
    """Number of samples by answer; empty for a single sample."""
    if verdict is None or verdict.votes_true is None:
        return []
    counts = {"true": verdict.votes_true, "false": verdict.votes_false, "na": verdict.votes_na}
    return [(answer, count) for answer, count in counts.items() if count]


def _change(verdict: Verdict | None) -> dict[str, Any] | None:
    """First and final verdict of reflection; None for other engines."""
    if verdict is None or not verdict.first_state:
        return None
    first, last = (
        StepAnswer(verdict.first_state, verdict.first_value),
        StepAnswer(verdict.state, verdict.value),
    )
    return {"first": first, "last": last, "changed": first != last}


def _sided_with(verdict: Verdict | None) -> str:
    """The side that the Judge took, in words; '' without a debate."""
    if verdict is None or not verdict.sided_with:
        return ""
    names = {role.key: f"the {role.mark}" for role in ADVOCATES}
    return names.get(verdict.sided_with, "neither side")


def _retrieves(run: Run) -> bool:
    knowledge = run.judge.config.get("knowledge", {})
    return bool(knowledge.get("mode") == "retrieved")


def _passages(verdict: Verdict | None, criterion_id: int) -> tuple[ShownPassage, ...]:
    """Passages retrieved for this chat and criterion, best first."""
    if verdict is None or verdict.unit_id is None:
        return ()
    return passages_of([verdict.unit_id]).get((verdict.unit_id, criterion_id), ())
