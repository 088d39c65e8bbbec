"""A judge that retrieves: the passages it was shown are stored, and shown to the model before the chat."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.knowledge.core.retrieval import RETRIEVER
from evaluation.knowledge.queries import passages_of
from evaluation.knowledge.services import knowledge_import
from evaluation.models.prompts import SnapshotItem
from evaluation.models.runs import Passage, Verdict
from evaluation.runs.queries.engine_stats import Share, run_engine_stats
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_set
from tests.factories.runs import always, answering, evaluate, rubric_of, the_run

pytestmark = pytest.mark.django_db(transaction=True)

CARD = [("user", "My card was declined!"), ("assistant", "Please ask your bank about the card.")]
OTHER = [("user", "Zebra?"), ("assistant", "Umbrella.")]


@pytest.fixture
def shop(tmp_path: Path) -> ChatSet:
    """Two articles, a criterion that may read both, a chat about one of them and a chat about neither."""
    (tmp_path / "cards.md").write_text("# Paying\n\nA declined card is released by shopper support.\n")
    (tmp_path / "wine.md").write_text("# Alcohol\n\nBottles go back without an adult.\n")
    knowledge_import(folder=tmp_path)
    rubric = rubric_of("fact", tier="context")
    Criterion.objects.update(articles=Criterion.Articles.ALL)
    return make_set(rubric, make_chat("card", messages=CARD), make_chat("other", messages=OTHER))


def user_messages(requests: list[dict[str, Any]]) -> dict[str, str]:
    """The user message about each chat."""
    texts = [request["messages"][1]["content"] for request in requests]
    return {("card" if "declined!" in text else "other"): text for text in texts}


def test_passages_are_shown_before_the_chat_and_stored_with_place_score_and_version(
    shop: ChatSet, settings: Settings
) -> None:
    with answering(settings, always(True)) as stub:
        ended = evaluate("--set", shop.name, "--engine", "direct", "--knowledge", "retrieved")
    assert ended.code == 0, ended.err
    shown = user_messages(stub.requests)
    assert shown["card"].index("released by shopper support") < shown["card"].index("<<chat ")
    assert "Bottles go back" not in "".join(shown.values())
    assert "Article `" not in shown["other"]
    systems = {request["messages"][0]["content"] for request in stub.requests}
    assert len(systems) == 1
    units = {unit.chat.external_id: unit.pk for unit in the_run().units.select_related("chat")}
    ((place, (passage,)),) = passages_of(units.values()).items()
    assert place == (units["card"], Criterion.objects.get().pk)
    assert (passage.key, passage.version, passage.rank) == ("cards", 1, 1)
    assert passage.text == "# Paying\n\nA declined card is released by shopper support."
    assert passage.score > 0


def test_the_judge_pins_articles_retriever_and_budget(shop: ChatSet, settings: Settings) -> None:
    with answering(settings, always(True)):
        evaluate("--set", shop.name, "--engine", "direct", "--knowledge", "retrieved")
    judge = the_run().judge
    assert judge.config["knowledge"]["mode"] == "retrieved"
    assert judge.config["knowledge"]["retriever"] == RETRIEVER
    assert SnapshotItem.objects.filter(snapshot=judge.snapshot).count() == 2


def test_every_role_of_a_debate_reads_the_same_passages_and_they_are_stored_once(
    shop: ChatSet, settings: Settings
) -> None:
    with answering(settings, always(True)) as stub:
        assert evaluate("--set", shop.name, "--engine", "debate", "--knowledge", "retrieved").code == 0
    about = [r["messages"][1]["content"] for r in stub.requests if "declined!" in r["messages"][1]["content"]]
    assert len(about) == 3
    assert len({text[: text.index("<<end chat")] for text in about}) == 1
    assert Passage.objects.count() == 1


def flagged() -> dict[str, bool]:
    rows = Verdict.objects.filter(run=the_run()).values_list("chat__external_id", "flags")
    return {chat: "true_without_passage" in flags for chat, flags in rows}


def test_a_true_without_any_passage_is_flagged_and_counted(shop: ChatSet, settings: Settings) -> None:
    with answering(settings, always(True)):
        evaluate("--set", shop.name, "--engine", "direct", "--knowledge", "retrieved")
    assert flagged() == {"card": False, "other": True}
    assert run_engine_stats(the_run()).true_without_passage == Share(1, 2)


@pytest.mark.parametrize(
    ("value", "knowledge"), [(False, "retrieved"), (None, "retrieved"), (True, "static")]
)
def test_only_a_true_of_a_judge_that_retrieves_rests_on_silence(
    shop: ChatSet, settings: Settings, value: bool | None, knowledge: str
) -> None:
    with answering(settings, always(value)):
        evaluate("--set", shop.name, "--engine", "direct", "--knowledge", knowledge)
    assert flagged() == {"card": False, "other": False}


def test_a_simple_criterion_without_articles_misses_none(shop: ChatSet, settings: Settings) -> None:
    Criterion.objects.update(articles=Criterion.Articles.LISTED, tier="simple")
    with answering(settings, always(True)):
        evaluate("--set", shop.name, "--engine", "direct", "--knowledge", "retrieved")
    assert flagged() == {"card": False, "other": False}
