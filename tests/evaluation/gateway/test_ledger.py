"""Calls on record in bulk: asked once, what is stored first stays, what never left is taken back."""

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluation.core.hashing import canonical, text_hash
from evaluation.core.types import (
    Article,
    CallUse,
    GroupResult,
    ModelAt,
    Passage,
    PromptMessage,
    Request,
    TokenLogprob,
    VerdictResult,
    Votes,
)
from evaluation.endpoints.core.known_models import known_profile
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.gateway.client import EndpointClient
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.ledger import Ask, CallUsed, Ended, Ledger, OpenedCall, call_key
from evaluation.gateway.model import Gateway, GatewayModel, request_body
from evaluation.gateway.replies import Outcome
from evaluation.gateway.throttle import EndpointDown
from evaluation.gateway.writer import DatabaseThread
from evaluation.models.judges import Judge
from evaluation.models.prompts import ArticleVersion, KnowledgeArticle
from evaluation.models.runs import Attempt, ModelCall, Run, TextBlock, Unit, UnitCall, Verdict, WorkerLease
from evaluation.models.runs import Passage as PassageRow
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.worker.units import JudgedUnit, UnitWriter, Work
from labeling.models.rubric import Criterion
from tests.factories.runs import chats_of, rubric_of

pytestmark = pytest.mark.django_db  # each test in a transaction, as the database thread has it
ELSEWHERE = Endpoint("http://other/v1", "http://other/v1", "", False)
OPENAI = Endpoint("https://api.openai.com/v1", "https://api.openai.com/v1", "key", False)
ANSWER = Outcome(kind="answered", status=200, text="VERDICTS\npolite: TRUE", prompt_tokens=9)


def asking(text: str, **more: object) -> Request:
    """A request whose rules are shared by all."""
    request = Request(
        role="direct",
        step=1,
        messages=(PromptMessage("system", ("The rules.",)), PromptMessage("user", ("The chat:", text))),
        model="judge-model",
        temperature=0.0,
        max_tokens=50,
        top_p=None,
        seed=None,
        endpoint=ELSEWHERE.id,
    )
    return replace(request, **more)  # type: ignore[arg-type]


def ask(text: str, *, unit: int | None = None) -> Ask:
    request = asking(text)
    return Ask(request, call_key(request, sample=0), 0, None, unit)


def ended(question: Ask, opened: OpenedCall, outcome: Outcome = ANSWER) -> Ended:
    return Ended(question, opened, outcome, "answered", None)


def leased_units(count: int) -> list[Unit]:
    """Units of a run, leased to a process."""
    now = timezone.now()
    lease = WorkerLease.objects.create(
        token=uuid.uuid4(), worker="here", pid=1, beat_at=now, expires_at=now + timedelta(minutes=1)
    )
    judge = Judge.objects.create(fingerprint=uuid.uuid4().hex, name="j", engine="direct", config={})
    run = Run.objects.create(judge=judge, units_total=count)
    return [
        Unit.objects.create(run=run, chat=chat, group=0, state=Unit.State.LEASED, lease=lease, tries=1)
        for chat in chats_of(count)
    ]


def finished(unit: Unit, *uses: CallUse, verdict: VerdictResult | None = None, **more: object) -> JudgedUnit:
    verdicts = (verdict or VerdictResult("polite", "read", True),)
    work = Work(unit.pk, unit.chat_id, core_chat(unit.chat), unit.group)
    return JudgedUnit(unit.run_id, unit.lease_id or 0, work, GroupResult(verdicts, uses, **more))  # type: ignore[arg-type]


def test_many_questions_are_put_on_record_with_the_parts_of_their_prompts() -> None:
    opened = Ledger().open([ask("one"), ask("two"), ask("three")])
    assert all(call.attempt_id and call.to_send for call in opened)
    assert ModelCall.objects.count() == Attempt.objects.filter(number=1, outcome="sent").count() == 3
    assert set(TextBlock.objects.values_list("text", flat=True)) == {
        *("The rules.", "The chat:"),
        *("one", "two", "three"),
    }


def test_the_same_question_twice_at_once_is_sent_once() -> None:
    first, second = Ledger().open([ask("one"), ask("one")])
    assert first.attempt_id and not second.attempt_id
    assert second.waiting
    assert Attempt.objects.count() == 1


def test_a_question_that_was_answered_gets_its_stored_answer_with_its_probabilities() -> None:
    ledger, question = Ledger(), ask("one")
    tokens = (TokenLogprob("TRUE", -0.1, (("TRUE", -0.1), ("FALSE", -2.4))),)
    (opened,) = ledger.open([question])
    ledger.end([ended(question, opened, replace(ANSWER, logprobs=tokens))])
    again, new = Ledger().open([question, ask("two")])
    assert again.reply is not None and again.reply.text == ANSWER.text
    assert again.reply.logprobs == tokens
    assert again.reply.call == CallUsed(again.call_id, reused=True)
    assert new.attempt_id and Attempt.objects.count() == 2


def test_a_stored_answer_is_read_by_one_query_and_nothing_is_written() -> None:
    ledger, questions = Ledger(), [ask("one"), ask("two")]
    for question, opened in zip(questions, ledger.open(questions), strict=True):
        ledger.end([ended(question, opened)])
    with CaptureQueriesContext(connection) as queries:
        again = Ledger().open([*questions, questions[0]])
    assert [one.reply and one.reply.text for one in again] == [ANSWER.text] * 3
    assert [query["sql"].split()[0] for query in queries] == ["SELECT"]


def test_an_answer_that_another_process_stored_first_stays() -> None:
    ledger, question = Ledger(), ask("one")
    (opened,) = ledger.open([question])
    ModelCall.objects.update(state="answered", reply="first")
    ledger.end([ended(question, opened)])
    assert ModelCall.objects.get().reply == "first"
    assert Attempt.objects.get().outcome == "answered"


@pytest.mark.django_db(transaction=True)
def test_parts_of_a_batch_that_was_rolled_back_are_offered_to_the_database_again() -> None:
    ledger = Ledger()
    with pytest.raises(RuntimeError), transaction.atomic():
        ledger.open([ask("one")])
        raise RuntimeError
    assert not TextBlock.objects.exists()
    with transaction.atomic():
        ledger.open([ask("one")])
    assert TextBlock.objects.count() == 3


def test_another_request_of_a_call_has_the_next_number() -> None:
    ledger, question = Ledger(), ask("one")
    opened = ledger.open([question])
    ledger.end([Ended(question, opened[0], Outcome("server_error", 500), None, None)])
    ledger.again([question])
    assert list(Attempt.objects.values_list("number", "outcome")) == [(1, "server_error"), (2, "sent")]


@pytest.mark.django_db(transaction=True)
def test_a_request_that_never_left_is_no_attempt() -> None:
    class Closed:
        async def enter(self, *, tokens: int) -> None:
            raise EndpointDown("closed")

        def seen(self, outcome: Outcome) -> None: ...

        def leave(self) -> None: ...

    async def work(database: DatabaseThread) -> None:
        gateway = gateway_of(database, Closed())
        await GatewayModel(gateway, None, None).complete(asking("one"))

    with DatabaseThread() as database, pytest.raises(EndpointDown):
        asyncio.run(work(database))
    assert (ModelCall.objects.get().state, Attempt.objects.count()) == ("claimed", 0)


def gateway_of(database: DatabaseThread, throttle: object) -> Gateway:
    return Gateway(
        endpoint=ELSEWHERE,
        client=EndpointClient(ELSEWHERE),
        database=database,
        throttles={ModelAt(ELSEWHERE.id, "judge-model"): throttle},  # type: ignore[dict-item]
        prepared=asyncio.Semaphore(4),
        prices={},
        timeout=1.0,
    )


# ---------- units


def test_units_are_put_away_together_with_their_verdicts_calls_and_counts() -> None:
    rubric_of("polite")
    units, ledger = leased_units(3), Ledger()
    questions = [ask(unit.chat.external_id, unit=unit.pk) for unit in units]
    opened = ledger.open(questions)
    ledger.end([ended(*pair) for pair in zip(questions, opened, strict=True)])
    uses = [
        CallUse("direct", 1, CallUsed(call.call_id, n == 2, 9, 0, 5, 40, 10 * n), window=1, sample=2)
        for n, call in enumerate(opened)
    ]
    writer = UnitWriter({"polite": Criterion.objects.get().pk})
    assert writer.finish([finished(*pair) for pair in zip(units, uses, strict=True)]) == [True] * 3
    run = Run.objects.get()
    assert (run.units_done, run.units_failed, run.calls, run.reused) == (3, 0, 2, 1)
    assert (run.prompt_tokens, run.completion_tokens) == (18, 10)
    assert (run.prompt_chars, run.repeated_chars) == (80, 10)
    assert list(UnitCall.objects.values_list("window", "sample", "reused")) == [
        (1, 2, False),
        (1, 2, False),
        (1, 2, True),
    ]
    assert Verdict.objects.filter(state="read", value=True).count() == 3
    assert not Unit.objects.exclude(state="done", lease=None).exists()


def test_a_late_finisher_writes_nothing_and_the_others_of_its_batch_are_stored() -> None:
    rubric_of("polite")
    units = leased_units(100)
    results = [finished(unit) for unit in units]
    Unit.objects.filter(pk__in=[unit.pk for unit in units[::2]]).update(lease=None, state="open")
    writer = UnitWriter({"polite": Criterion.objects.get().pk})
    assert writer.finish(results) == [False, True] * 50
    assert set(Verdict.objects.values_list("unit", flat=True)) == {unit.pk for unit in units[1::2]}
    assert Run.objects.get().units_done == 50


def test_votes_probability_and_passages_are_kept_with_the_verdict() -> None:
    rubric_of("polite")
    article = KnowledgeArticle.objects.create(key="refunds")
    ArticleVersion.objects.create(article=article, number=1, title="t", text="old", content_hash="a")
    newest = ArticleVersion.objects.create(article=article, number=2, title="t", text="new", content_hash="b")
    (unit,) = leased_units(1)
    verdict = VerdictResult("polite", "read", True, p_true=0.75, votes=Votes(2, 1, 0))
    passage = Passage(Article("refunds", 2, "t", "new"), rank=1, start=0, end=3, score=1.5)
    writer = UnitWriter({"polite": Criterion.objects.get().pk})
    writer.finish([finished(unit, verdict=verdict, passages={"polite": (passage,)})])
    row = Verdict.objects.get()
    assert (row.p_true, row.votes_true, row.votes_false, row.votes_na) == (0.75, 2, 1, 0)
    stored = PassageRow.objects.get()
    assert (stored.article_version_id, stored.rank, stored.score) == (newest.pk, 1, 1.5)


# ---------- keys and bodies


def test_the_content_key_of_a_plain_request_is_what_it_always_was() -> None:
    request = asking("one")
    settings = {"temperature": 0.0, "max_tokens": 50}
    messages = [["system", "The rules."], ["user", "The chat:\n\none"]]
    written = canonical([ELSEWHERE.id, "judge-model", settings, messages, 3])
    assert call_key(request, sample=3) == text_hash(written)


@pytest.mark.parametrize("more", [{"reasoning_effort": "low"}, {"logprobs": True}])
def test_what_changes_the_answer_changes_the_key_and_is_sent(more: dict[str, object]) -> None:
    plain, other = asking("one"), asking("one", **more)
    assert call_key(plain, sample=0) != call_key(other, sample=0)
    body = request_body(other, ModelProfile())
    assert body.items() >= more.items()
    assert body.get("top_logprobs") == (5 if "logprobs" in more else None)
    assert not body.keys() & {"prompt_cache_key"}


def test_a_model_that_takes_it_gets_the_key_of_common_prefixes() -> None:
    openai = known_profile(endpoint=OPENAI.id, model="gpt-4.1-mini")
    request, judge = asking("one"), "f" * 80
    named = request_body(request, openai, cache_key=judge)["prompt_cache_key"]
    assert len(named) <= 64
    assert named == request_body(asking("two"), openai, cache_key=judge)["prompt_cache_key"]
    assert named != request_body(request, openai, cache_key="e" * 80)["prompt_cache_key"]
    assert "prompt_cache_key" not in request_body(request, ModelProfile(), cache_key=judge)


def test_a_cost_is_kept_to_twelve_places() -> None:
    ledger, question = Ledger(), ask("one")
    (opened,) = ledger.open([question])
    ledger.end([Ended(question, opened, ANSWER, "answered", Decimal("0.000000000012"))])
    assert Attempt.objects.get().cost_usd == ModelCall.objects.get().cost_usd == Decimal("0.000000000012")
