"""Labelled chats on which a prompt is tested, and a judge that errs by the prompt it is asked with."""

from typing import Any

from django.utils import timezone

from alignment.models.regressions import RegressionTest
from alignment.regression.worker import regressions_sweep, runs_of
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.runs.worker.execute import run_execute
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.labels import Label
from labeling.models.people import Workspace
from labeling.models.rubric import Criterion
from tests.factories.rows import analyze, make_rater, make_rubric
from tests.stub_endpoint import Answer, Body, StubReply, asked_keys, case_of, conversation

MARK = "Look twice."
CHATS = 110


def truth(n: int) -> bool:
    """The human answer on every criterion."""
    return n % 2 == 0


def make_golden(*keys: str, chats: int = CHATS, name: str = "golden", tier: str = "context") -> ChatSet:
    """A set of labelled chats, split dev; each criterion is asked by itself."""
    profiles_ensure()
    Workspace.current()  # its secret is part of every prompt
    rubric = make_rubric(*keys or ("polite",), tier=tier, name=f"Rubric of {name}")
    chat_set = ChatSet.objects.create(name=name, rubric=rubric)
    rows = Chat.objects.bulk_create(_chat(n) for n in range(chats))
    ChatSetMember.objects.bulk_create(
        ChatSetMember(chat_set=chat_set, chat=row, position=n, split="dev") for n, row in enumerate(rows, 1)
    )
    rater, now = make_rater(), timezone.now()
    criteria = list(rubric.criteria.all())
    Label.objects.bulk_create(
        Label(
            chat=row,
            criterion=criterion,
            version=criterion.versions.get(),
            rater=rater,
            value=truth(n),
            state="submitted",
            source="import",
            given_at=now,
        )
        for n, row in enumerate(rows)
        for criterion in criteria
    )
    analyze()
    consensus_refresh(criterion_ids=[row.pk for row in criteria], chat_ids=[row.pk for row in rows])
    return chat_set


def version_of(key: str = "polite", *, mark: str = MARK) -> PromptVersion:
    """The next version of a criterion's prompt."""
    text = f"# Context\nA shop.\n\n# Objective\nIs {key} so?\n\n# Style\n{mark}\n"
    return prompt_version_add(criterion=Criterion.objects.get(key=key), text=text, reason="Closer reading")


def champion_of(key: str = "polite") -> PromptVersion:
    row = Criterion.objects.get(key=key)
    return champions(criteria=[row])[row.pk]


def judging(*, champion: int = 0, wrong: dict[str, int] | None = None, delay: float = 0.0) -> Answer:
    """A judge that errs on the first so many chats; asked with a mark, on so many of the last."""
    cases: Any = {f"g{n}": n for n in range(CHATS)}

    def answer(body: Body) -> StubReply:
        said = conversation(body)
        n = cases[case_of(body, cases)]
        errs = n < champion
        for mark, count in (wrong or {}).items():
            if mark in said:
                errs = n >= CHATS - count
        lines = "\n".join(f"{key}: {str(truth(n) is not errs).upper()}" for key in asked_keys(body))
        return StubReply(f"What was said.\n\nVERDICTS\n{lines}", delay=delay)

    return answer


def carried_out(test: RegressionTest) -> RegressionTest:
    """The test once its runs, the confirming one too, are over."""
    while test.is_open:
        for run in runs_of(test):
            run_execute(run, on_unit=lambda failed: None)
        regressions_sweep()
        test = RegressionTest.objects.get(pk=test.pk)
    return test


def _chat(n: int) -> Chat:
    texts = ("user", f"In case g{n}: where is my order?"), ("assistant", "It is on its way.")
    topic, _ = Topic.objects.get_or_create(key="delivery", defaults={"name": "Delivery"})
    return Chat(
        external_id=f"g{n}",
        topic=topic,
        messages=[{"n": place, "role": role, "content": text} for place, (role, text) in enumerate(texts, 1)],
        content_hash=f"{n:064}",
        message_count=2,
        char_count=sum(len(text) for _, text in texts),
    )
