"""With an embedding model, passages near in meaning are found too; every text is embedded once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from asgiref.sync import async_to_sync
from pytest_django import Settings

from evaluation.core.types import Article, Chat, Criterion, Message, Setup, Vector
from evaluation.gateway.embeddings import Embedded, read_embeddings
from evaluation.gateway.replies import Outcome
from evaluation.knowledge.core.retrieval import HYBRID, Retrieval, retrieve_for, texts_to_embed
from evaluation.knowledge.queries import passages_of
from evaluation.knowledge.services import knowledge_import
from evaluation.models.prompts import TextVector
from evaluation.models.runs import Attempt, ModelCall, Verdict
from evaluation.runs.queries.ledger import run_ledger
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion as CriterionRow
from tests.factories.batches import batching, planned, stepped
from tests.factories.rows import make_chat, make_set
from tests.factories.runs import KEY, always, answering, evaluate, rubric_of, the_run
from tests.stub_endpoint import StubReply

PLASTIC = "My plastic bounced"
MODEL = "embedder-small"
HYBRID_RUN = ("--engine", "direct", "--knowledge", "retrieved", "--embedding-model", MODEL)


def meaning(text: str) -> list[float]:
    """A planted embedding: cards and plastic are one thing, wine is another; no text is without any."""
    lower = text.lower()
    return [1.0 * ("card" in lower or "plastic" in lower), 1.0 * ("alcohol" in lower), 0.1]


# ---------- fusion ----------

CARDS = Article("cards", 1, "Paying", "A declined card is released by shopper support.")
WINE = Article("wine", 1, "Alcohol", "Bottles go back without an adult.")
FACT = Criterion("fact", "Is it so?", "", "context", False, True, "", (CARDS, WINE))
SETUP = Setup("direct", {}, knowledge="retrieved", passage_tokens=1000, embedding_model=MODEL)


class Planted:
    """An embedder that knows `meaning`, or gives nothing."""

    def __init__(self, *, works: bool = True) -> None:
        self.works = works

    async def embed(self, texts: Sequence[str]) -> Mapping[str, Vector] | None:
        return {text: np.array(meaning(text), dtype=np.float32) for text in texts} if self.works else None


def found(said: str, *, embedder: Planted | None, criterion: Criterion = FACT) -> Retrieval:
    chat = Chat("h", (Message(1, "user", said),))
    return async_to_sync(retrieve_for)(chat=chat, criteria=[criterion], setup=SETUP, embedder=embedder)


def test_a_passage_without_a_common_word_is_found_by_its_meaning() -> None:
    passages = found(PLASTIC, embedder=Planted()).passages["fact"]
    assert [passage.article.key for passage in passages] == ["cards", "wine"]
    assert [round(1 / passage.score) for passage in passages] == [61, 62]


def test_a_passage_that_both_rankings_find_comes_first() -> None:
    passages = found("plastic, bottles without an adult", embedder=Planted()).passages["fact"]
    assert passages[0].article.key == "wine"  # first by words, second by meaning
    assert passages[0].score == round(1 / 61 + 1 / 62, 6)


@pytest.mark.parametrize("embedder", [Planted(works=False), None])
def test_without_vectors_words_alone_rank_and_it_is_said(embedder: Planted | None) -> None:
    retrieval = found("My card was declined", embedder=embedder)
    assert [passage.article.key for passage in retrieval.passages["fact"]] == ["cards"]
    assert retrieval.lexical_only


def test_all_passages_and_the_pieces_of_the_chat_are_embedded_once() -> None:
    chat = Chat(
        "h", (Message(1, "user", "a " * 400), Message(2, "tool", "hidden"), Message(3, "user", "end"))
    )
    texts = texts_to_embed(chat, [FACT, FACT])
    assert texts[:2] == [f"{article.title}\n{article.text}" for article in (CARDS, WINE)]
    assert len(texts) == len(set(texts)) > 3
    assert all(len(text) <= 500 for text in texts)
    assert not any("hidden" in text for text in texts)


# ---------- replies ----------


def read(content: object, *, status: int = 200, texts: int = 1) -> Outcome:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return read_embeddings(texts=texts, status=status, headers={}, content=raw, secret=KEY)


def test_vectors_are_read_by_index_and_have_length_1() -> None:
    rows = [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 4]}]
    outcome = read({"data": rows, "usage": {"prompt_tokens": 9}}, texts=2)
    assert isinstance(outcome, Embedded)
    assert [vector.tolist() for vector in outcome.vectors] == [pytest.approx([0.6, 0.8]), [0, 1]]
    assert (outcome.kind, outcome.prompt_tokens, outcome.completion_tokens) == ("answered", 9, 0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"[1]",
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [0, 0]}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [1e999]}]},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]},
        {"choices": [{"message": {"content": "Hello"}}]},
    ],
)
def test_anything_else_is_no_embedding(content: object) -> None:
    assert read(content).kind == "not_json"


def test_a_failed_request_is_named_without_the_key() -> None:
    outcome = read({"error": {"message": f"no {KEY}", "code": "model_not_found"}}, status=404)
    assert (outcome.kind, outcome.error) == (
        "bad_request",
        "HTTP 404: the endpoint knows no such model or address (model_not_found)",
    )


# ---------- runs ----------


@pytest.fixture
def shop(tmp_path: Path) -> ChatSet:
    """Two articles, and two chats about a card that do not say the word."""
    (tmp_path / "cards.md").write_text("# Paying\n\nA declined card is released by shopper support.\n")
    (tmp_path / "wine.md").write_text("# Alcohol\n\nBottles go back without an adult.\n")
    knowledge_import(folder=tmp_path)
    rubric = rubric_of("fact", tier="context")
    CriterionRow.objects.update(articles=CriterionRow.Articles.ALL)
    chats = [make_chat(f"c{n}", messages=[("user", PLASTIC), ("assistant", f"Sorry {n}")]) for n in (1, 2)]
    return make_set(rubric, *chats)


def keys_found() -> set[tuple[str, ...]]:
    units = list(the_run().units.values_list("pk", flat=True))
    return {tuple(passage.key for passage in passages) for passages in passages_of(units).values()}


def flags() -> set[str]:
    return {flag for row in Verdict.objects.filter(run=the_run()) for flag in row.flags}


@pytest.mark.django_db(transaction=True)
def test_a_run_ranks_by_meaning_and_embeds_every_text_once(shop: ChatSet, settings: Settings) -> None:
    with answering(settings, always(True)) as stub:
        stub.embed = meaning
        ended = evaluate("--set", shop.name, *HYBRID_RUN)
        assert ended.code == 0, ended.err
        assert keys_found() == {("cards", "wine")}
        assert flags() == set()
        assert len(stub.embedded) == len(set(stub.embedded)) == 4  # two passages and two chats
        assert TextVector.objects.count() == 4
        assert evaluate("--set", shop.name, *HYBRID_RUN, "--replicate", "1").code == 0
        assert len(stub.embedded) == 4
    assert keys_found() == {("cards", "wine")}
    knowledge = the_run().judge.config["knowledge"]
    assert (knowledge["embedding_model"], knowledge["hybrid"]) == (MODEL, HYBRID)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "reply",
    [
        None,
        StubReply(status=404, raw=b"{}"),
        StubReply(status=401, raw=json.dumps({"error": {"message": KEY}}).encode()),
        StubReply(status=500),
        StubReply(raw=b"no JSON"),
    ],
)
def test_a_failing_embeddings_endpoint_fails_no_verdict(
    shop: ChatSet, settings: Settings, reply: StubReply | None
) -> None:
    with answering(settings, always(True)) as stub:
        stub.embed = None if reply is None else lambda text: reply
        ended = evaluate("--set", shop.name, *HYBRID_RUN)
    assert (ended.code, the_run().units_done) == (0, 2), ended.err
    assert flags() == {"lexical_only", "true_without_passage"}
    assert TextVector.objects.count() == 0
    assert not any(KEY in f"{attempt.error}{attempt.call.error}" for attempt in Attempt.objects.all())


@pytest.mark.django_db(transaction=True)
def test_requests_for_vectors_are_on_record_and_cost_money(
    shop: ChatSet, settings: Settings, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.json"
    judge = {"input": 1, "output": 1}
    prices.write_text(json.dumps({"judge-model": judge}))
    with answering(settings, always(True), prices=str(prices)) as stub:
        stub.embed = meaning
        refused = evaluate("--set", shop.name, *HYBRID_RUN, "--budget", "5")
        assert MODEL in refused.error
        assert stub.embedded == []
        prices.write_text(json.dumps({"judge-model": judge, MODEL: judge}))
        assert evaluate("--set", shop.name, *HYBRID_RUN, "--budget", "5").code == 0
    ledger = run_ledger(the_run())
    rows = {row.role: row.sums for row in ledger.rows}
    assert rows["embedding"].calls == ModelCall.objects.filter(role="embedding").count() > 0
    assert rows["embedding"].cost_usd
    assert the_run().cost_usd == ledger.total.cost_usd == the_run().committed_usd


@pytest.mark.django_db(transaction=True)
def test_an_estimate_asks_for_no_vector(shop: ChatSet, settings: Settings) -> None:
    with answering(settings, always(True)) as stub:
        stub.embed = meaning
        estimate = evaluate("--set", shop.name, *HYBRID_RUN, "--dry-run")
        assert estimate.answer["calls"] == 2
        assert stub.seen == []
        evaluate("--set", shop.name, *HYBRID_RUN)
        assert evaluate("--set", shop.name, *HYBRID_RUN, "--dry-run").answer["calls"] == 0


@pytest.mark.django_db(transaction=True)
def test_a_batch_run_ranks_by_meaning_too(shop: ChatSet, settings: Settings) -> None:
    with batching(settings, always(True)) as stub:
        stub.embed = meaning
        run = planned(settings, stub, "--set", shop.name, *HYBRID_RUN)
        stepped(run)
        assert len(stub.embedded) == len(set(stub.embedded)) == 4
    assert keys_found() == {("cards", "wine")}
    assert flags() == set()
