"""A criterion whose champion and raters disagree on train, and models that answer with a revision."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.services import SuggestionChoice, suggestion_start
from alignment.tasks import suggest
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, RunChat, Verdict
from evaluation.prompts.queries.versions import champions
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.labels import Label, RaterNote
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_rater, make_rubric, make_set
from tests.factories.runs import answering
from tests.factories.verdicts import make_judge, make_run
from tests.stub_endpoint import Answer, StubEndpoint, StubReply

REASON = "Apologies count only where the bot is at fault"
PROSE = "In chat 1 and chat 2 the judge took any apology for politeness (m2)."
RULE = "An apology alone is not polite."


@dataclass
class Disputes:
    """Train chats with a verdict of the champion each, and the other human answer."""

    criterion: Criterion
    chat_set: ChatSet
    run: Run
    rater: Rater

    @property
    def champion(self) -> PromptVersion:
        return champions(criteria=[self.criterion])[self.criterion.pk]

    def chat(self, text: str, *, split: str = "train", people: bool = False, judge: bool = True) -> Chat:
        """One more chat in the set, labelled and judged."""
        row = make_chat(
            messages=[("user", f"{text}, where is it?"), ("assistant", f"Sorry, {text} is late.")]
        )
        place = self.chat_set.members.count() + 1
        ChatSetMember.objects.create(chat_set=self.chat_set, chat=row, split=split, position=place)
        RunChat.objects.create(run=self.run, chat=row, split=split)
        self.labelled(row, people, why=f"people on {text}")
        self.judged(row, judge, why=f"judge on {text}")
        return row

    def labelled(self, chat: Chat, value: bool, *, why: str = "Because.") -> None:
        Label.objects.create(
            chat=chat,
            criterion=self.criterion,
            rater=self.rater,
            version=self.criterion.versions.get(),
            value=value,
            rationale=why,
            evidence=[{"n": 2}],
            state=Label.State.SUBMITTED,
            given_at=timezone.now(),
        )
        consensus_refresh(criterion_ids=[self.criterion.pk], chat_ids=[chat.pk])

    def judged(self, chat: Chat, value: bool | None, *, why: str = "So.", run: Run | None = None) -> Verdict:
        return Verdict.objects.create(
            run=run or self.run,
            chat=chat,
            criterion=self.criterion,
            state="read",
            value=value,
            rationale=why,
            stored_at=timezone.now(),
        )

    def noted(self, chat: Chat, text: str) -> RaterNote:
        return RaterNote.objects.create(
            rater=self.rater,
            chat=chat,
            criterion=self.criterion,
            version=self.criterion.versions.get(),
            kind=RaterNote.Kind.UNCLEAR,
            text=text,
            client_id=f"{chat.pk:032x}",
        )


def make_disputes(*texts: str) -> Disputes:
    """`polite` with its champion, and a train chat for each text: labelled False, judged True."""
    profiles_ensure()
    rubric = make_rubric("polite")
    chat_set = make_set(rubric)
    run = make_run(make_judge(rubric), chat_set, finished_at=timezone.now())
    disputes = Disputes(rubric.criteria.get(), chat_set, run, make_rater("anna"))
    for text in texts:
        disputes.chat(text)
    return disputes


def revised(prompt: str, *, rule: str = RULE) -> str:
    """The prompt with one more rule."""
    return prompt.replace("# Style", f"{rule}\n\n# Style")


def answer_with(text: str, *, prose: str = PROSE, reason: str = REASON) -> str:
    """An answer of the form that is asked for."""
    return f"{prose}\n\nREASON: {reason}\n\nREVISED PROMPT\n~~~~\n{text}\n~~~~"


def drafts(disputes: Disputes, *, rule: str = RULE) -> Answer:
    """A model that adds one rule to the champion."""
    text = answer_with(revised(disputes.champion.text, rule=rule))
    return lambda body: StubReply(text)


def asked(disputes: Disputes, by: User, **choice: int | bool) -> Suggestion:
    """A suggestion asked for, and worked off in this process."""
    row = suggestion_start(
        criterion=disputes.criterion,
        choice=SuggestionChoice(**choice),  # type: ignore[arg-type]
        by=by,
    )
    work_off(row)
    return row


def work_off(row: Suggestion) -> None:
    """What a worker does; in a thread, for a browser test has an event loop running in its own."""

    def work() -> None:
        suggest(row.pk)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    row.refresh_from_db()


@contextmanager
def suggesting(
    settings: Settings,
    disputes: Disputes,
    answer: Callable[..., StubReply] | None = None,
    *,
    prices: str = "",
) -> Iterator[StubEndpoint]:
    with answering(settings, answer or drafts(disputes), prices=prices) as stub:
        yield stub


def stored_suggestion(criterion: Criterion, chat: Chat, run: Run, *, by: User, text: str) -> Suggestion:
    """A finished suggestion on one chat, whose every text begins with `text`."""
    told = {"id": chat.pk, "run": run.pk, "people": False, "judge": True}
    return Suggestion.objects.create(
        criterion=criterion,
        base=PromptVersion.objects.get(criterion=criterion, number=1),
        base_text=f"{text}-prompt",
        by=by,
        model=f"{text}-model",
        material={"question": "Is it so?", "chats": [told], "notes": 0},
        question="0" * 64,
        state="done",
        text=f"# Objective\n{text}-suggested",
        reasons=f"{text}-reasons in chat 1",
        reason=f"{text}-why",
    )
