"""One chat of a regression test: labels, champion and candidate in columns."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from alignment.chat_detail.queries.page import labels_and_adjudication
from alignment.chat_detail.queries.verdict_detail import ShownStep, verdict_detail
from alignment.comparison.queries.human_answers import HumanAnswer, human_answers
from alignment.regression.queries.cells import (
    MEANINGS,
    NAMES,
    CellFilter,
    JudgeAnswer,
    Member,
    PairedCriterion,
    chat_url,
)
from common.safe_text import cited_turns
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.chats import Chat
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class JudgeOutput:
    """One judge's answer with its rationale.

    version : number of its prompt; None for an unsaved text or an imported judge.
    right : whether the answer equals the consensus; None if not compared.
    url, repeated_url : pages of the evaluation in its run and in the repeated run.
    """

    name: str
    version: int | None
    run: Run
    answer: JudgeAnswer
    right: bool | None
    verdict: Verdict | None
    steps: tuple[ShownStep, ...]
    url: str
    repeated_url: str


def regression_chat_page(
    *,
    tested: PairedCriterion,
    criterion: Criterion,
    chat: Chat,
    member: Member,
    cell: str,
    narrow: CellFilter,
) -> dict[str, Any]:
    """Return the template context. `cell` : the list to page through; '' means the chat's own cell."""
    own, version = tested.cell_of(member.place), newest_versions(criteria=[criterion])[criterion.pk]
    judges = _judge_outputs(tested, criterion, version, chat, member)
    human = human_answers(tested.scope, chat).get(criterion.pk, HumanAnswer())
    return {
        "test": tested.test,
        "chat": chat,
        "messages": chat.messages,
        "member": member,
        "criterion": criterion,
        "version": version,
        "focus": {
            "criterion": {"key": criterion.key, "passes_when": version.passes_when},
            **labels_and_adjudication(chat=chat, criterion_id=criterion.pk),
        },
        "human": human,
        "judges": judges,
        "cited": {turn for judge in judges for step in judge.steps for turn in cited_turns(step.text)},
        "own": {"key": own, "name": NAMES.get(own, "")},
        "meaning": MEANINGS.get(own, ""),
        "is_demo": chat.origin == Chat.Origin.DEMO,
        **_neighbours(tested, member, cell or own, narrow),
    }


def _judge_outputs(
    tested: PairedCriterion, criterion: Criterion, version: CriterionVersion, chat: Chat, member: Member
) -> list[JudgeOutput]:
    test, place = tested.test, member.place
    judges = (
        ("Champion", test.baseline_run, test.noise_run, tested.champion(place)),
        ("Candidate", test.candidate_run, test.confirm_run, tested.candidate(place)),
    )
    compared = tested.cell_of(place) not in ("", "no_verdict")
    runs = [run for _, run, _, _ in judges]
    prompts = JudgePrompt.objects.filter(judge__in=[run.judge_id for run in runs], criterion=criterion)
    numbers = dict(prompts.values_list("judge_id", "prompt_version__number"))
    rows = Verdict.objects.filter(run__in=runs, chat=chat, criterion=criterion)
    verdicts = {row.run_id: row for row in rows}
    return [
        JudgeOutput(
            name=name,
            version=numbers.get(run.judge_id),
            run=run,
            answer=answer,
            right=answer.value is tested.human(place) if compared else None,
            verdict=verdicts.get(run.pk),
            steps=_deciding(verdict_detail(run, chat, verdicts.get(run.pk), criterion, version)),
            url=_evaluation_url(run, chat, criterion),
            repeated_url=_evaluation_url(repeated, chat, criterion) if repeated else "",
        )
        for name, run, repeated, answer in judges
    ]


def _deciding(judged: dict[str, Any]) -> tuple[ShownStep, ...]:
    """Return the deciding step, or the last one."""
    return tuple(judged["deciding"] or judged["steps"][-1:])


def _evaluation_url(run: Run, chat: Chat, criterion: Criterion) -> str:
    return f"{reverse('alignment:chat', args=[run.pk, chat.pk])}?criterion={criterion.key}"


def _neighbours(tested: PairedCriterion, here: Member, cell: str, narrow: CellFilter) -> dict[str, Any]:
    """Return links to the list and to the chats before and after this one."""
    query = narrow.query(cell=cell)
    listed = tested.readable(cell, narrow) if cell else []
    before = [member for member in listed if member.place < here.place]
    after = [member for member in listed if member.place > here.place]
    back = reverse("alignment:regression_cell", args=[tested.test.pk, tested.pair.key, cell]) if cell else ""
    return {
        "cell": {"name": NAMES.get(cell, ""), "url": back + narrow.query() if cell else ""},
        "position": len(before) + 1 if here in listed else None,
        "listed": len(listed),
        "prev_url": chat_url(tested, before[-1]) + query if before else "",
        "next_url": chat_url(tested, after[0]) + query if after else "",
    }
