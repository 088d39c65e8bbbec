"""One chat of a regression test: what people said, and champion and candidate beside each other."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from alignment.chat_detail.queries.page import voices
from alignment.chat_detail.queries.verdict_detail import ShownStep, how_judged
from alignment.comparison.queries.human_answers import People, people_on
from alignment.regression.queries.cells import (
    MEANINGS,
    NAMES,
    Member,
    Narrow,
    PairedCriterion,
    Told,
    chat_url,
)
from common.safe_text import cited_turns
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.chats import Chat
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class Side:
    """One judge: its answer, why it gave it, and where all of it stands.

    `version` is the number of its prompt, None for a text that was never saved or an imported judge. `right`
    says whether it answers as people do, None where that is not compared. `url` and `again_url` lead to the
    whole evaluation in its run and in the run that asked it again.
    """

    name: str
    version: int | None
    run: Run
    told: Told
    right: bool | None
    verdict: Verdict | None
    steps: tuple[ShownStep, ...]
    url: str
    again_url: str


def regression_chat_page(
    *, tested: PairedCriterion, criterion: Criterion, chat: Chat, member: Member, cell: str, narrow: Narrow
) -> dict[str, Any]:
    """The template context. `cell` is the one walked through ('' = the one the chat is in)."""
    own, version = tested.cell_of(member.place), newest_versions(criteria=[criterion])[criterion.pk]
    sides = _sides(tested, criterion, version, chat, member)
    people = people_on(tested.scope, chat).get(criterion.pk, People())
    return {
        "test": tested.test,
        "chat": chat,
        "messages": chat.messages,
        "member": member,
        "criterion": criterion,
        "version": version,
        "focus": {
            "criterion": {"key": criterion.key, "passes_when": version.passes_when},
            **voices(chat=chat, criterion_id=criterion.pk),
        },
        "people": people,
        "sides": sides,
        "cited": {turn for side in sides for step in side.steps for turn in cited_turns(step.text)},
        "own": {"key": own, "name": NAMES.get(own, "")},
        "meaning": MEANINGS.get(own, ""),
        "is_demo": chat.origin == Chat.Origin.DEMO,
        **_walk(tested, member, cell or own, narrow),
    }


def _sides(
    tested: PairedCriterion, criterion: Criterion, version: CriterionVersion, chat: Chat, member: Member
) -> list[Side]:
    test, place = tested.test, member.place
    judges = (
        ("Champion", test.baseline_run, test.noise_run, tested.champion(place)),
        ("Candidate", test.candidate_run, test.confirm_run, tested.candidate(place)),
    )
    compared = tested.cell_of(place) not in ("", "no_verdict")
    runs = [run for _, run, _, _ in judges]
    asked = JudgePrompt.objects.filter(judge__in=[run.judge_id for run in runs], criterion=criterion)
    numbers = dict(asked.values_list("judge_id", "prompt_version__number"))
    found = Verdict.objects.filter(run__in=runs, chat=chat, criterion=criterion)
    verdicts = {row.run_id: row for row in found}
    return [
        Side(
            name=name,
            version=numbers.get(run.judge_id),
            run=run,
            told=told,
            right=told.value is tested.human(place) if compared else None,
            verdict=verdicts.get(run.pk),
            steps=_deciding(how_judged(run, chat, verdicts.get(run.pk), criterion, version)),
            url=_whole(run, chat, criterion),
            again_url=_whole(again, chat, criterion) if again else "",
        )
        for name, run, again, told in judges
    ]


def _deciding(judged: dict[str, Any]) -> tuple[ShownStep, ...]:
    """The step that decided; without one, how far it came."""
    return tuple(judged["deciding"] or judged["steps"][-1:])


def _whole(run: Run, chat: Chat, criterion: Criterion) -> str:
    return f"{reverse('alignment:chat', args=[run.pk, chat.pk])}?criterion={criterion.key}"


def _walk(tested: PairedCriterion, here: Member, cell: str, narrow: Narrow) -> dict[str, Any]:
    """The list that is walked through, and its chats before and after this one."""
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
