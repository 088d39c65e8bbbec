"""Samples, windows, probabilities and passages of a run: asked over HTTP, stored, never paid for twice."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.core.types import Votes, Windows
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.knowledge.services import knowledge_import
from evaluation.models.prompts import CriterionArticle, KnowledgeArticle
from evaluation.models.runs import ModelCall, Passage, Run, UnitCall, Verdict
from evaluation.runs.core.noise import flip_rate
from evaluation.runs.services.runs import RunChoice, run_start
from evaluation.runs.worker.execute import run_execute
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_set
from tests.factories.runs import always, answering, block, rubric_of, workspace
from tests.stub_endpoint import Answer, Body, StubReply

pytestmark = pytest.mark.django_db(transaction=True)

DIRECT = JudgeSpec("direct")


def start(chat_set: ChatSet, choice: JudgeSpec, *, replicate: int = 0) -> Run:
    """A whole run in this process."""
    run = run_start(
        chat_set=chat_set, judge=choice, run=RunChoice(replicate=replicate), endpoint=current_endpoint()
    )
    return run_execute(run, on_unit=lambda failed: None)


def in_turn(*values: bool) -> Answer:
    """A judge that changes its mind from answer to answer."""
    turns: Iterator[bool] = iter(values)
    return lambda body: block({"polite": next(turns)}, prose="What the messages show.")


def only_verdict(run: Run) -> Verdict:
    return Verdict.objects.get(run=run)


def test_samples_are_separate_calls_whose_majority_is_stored_with_its_votes(settings: Settings) -> None:
    chat_set = workspace("polite", chats=1)
    with answering(settings, in_turn(True, False, True)) as stub:
        run = start(chat_set, JudgeSpec("direct", samples=3))
    verdict = only_verdict(run)
    assert (run.state, verdict.state, verdict.value) == ("done", "read", True)
    votes = Votes(verdict.votes_true or 0, verdict.votes_false or 0, verdict.votes_na or 0)
    assert votes == Votes(2, 1, 0)
    assert flip_rate(votes) == pytest.approx(2 / 3)
    assert [body["temperature"] for body in stub.requests] == [0.7] * 3
    assert sorted(ModelCall.objects.values_list("sample", flat=True)) == [0, 1, 2]
    assert sorted(UnitCall.objects.values_list("sample", "step", "window")) == [
        (0, 1, 0),
        (1, 1, 0),
        (2, 1, 0),
    ]


def test_the_sample_that_gives_the_rationale_is_found_by_its_flag(settings: Settings) -> None:
    chat_set = workspace("polite", chats=1)
    with answering(settings, in_turn(True, False, False)):
        run = start(chat_set, JudgeSpec("direct", samples=3))
    verdict = only_verdict(run)
    (flag,) = [flag for flag in verdict.flags if flag.startswith("from_sample:")]
    sample = int(flag.removeprefix("from_sample:"))
    call = UnitCall.objects.get(unit=verdict.unit, role="direct", sample=sample).call
    assert verdict.value is False
    assert call.reply.endswith("polite: FALSE")


def test_same_judge_asks_no_sample_twice_and_a_replicate_asks_all_again(settings: Settings) -> None:
    chat_set = workspace("polite", chats=2)
    with answering(settings, always(True)) as stub:
        start(chat_set, JudgeSpec("direct", samples=3))
        again = start(chat_set, JudgeSpec("direct", samples=3))
        assert (stub.count, again.calls, again.reused) == (6, 0, 6)
        start(chat_set, JudgeSpec("direct", samples=3), replicate=1)
    assert stub.count == 12
    assert sorted(set(ModelCall.objects.values_list("sample", flat=True))) == [0, 1, 2, 3, 4, 5]


def test_tied_samples_are_unparsed_and_counted(settings: Settings) -> None:
    chat_set = workspace("polite", chats=1)
    with answering(settings, in_turn(True, False)):
        run = start(chat_set, JudgeSpec("direct", samples=2))
    verdict = only_verdict(run)
    assert (run.state, verdict.state, verdict.value, verdict.flags) == ("done", "unparsed", None, ["tied"])
    assert (verdict.votes_true, verdict.votes_false, verdict.votes_na) == (1, 1, 0)


def test_one_sample_stores_no_votes(settings: Settings) -> None:
    chat_set = workspace("polite", chats=1)
    with answering(settings, always(True)):
        verdict = only_verdict(start(chat_set, DIRECT))
    assert (verdict.votes_true, verdict.votes_false, verdict.votes_na) == (None, None, None)


def long_chat() -> ChatSet:
    """One chat of eight messages of about 1,000 tokens; the bot is rude in message 6."""
    turns = [(role, "word " * 800) for role in ("user", "assistant") * 4]
    turns[5] = ("assistant", f"Go away. {'word ' * 800}")
    return make_set(rubric_of("polite"), make_chat("long", messages=turns))


def by_window(body: Body) -> StubReply:
    text = str(body["messages"][-1]["content"])
    if "word word" in text and "m08 bot|" in text and "m01 customer|" in text:
        message = "This model's maximum context length is exceeded"
        error = {"error": {"message": message, "code": "context_length_exceeded"}}
        return StubReply(status=400, raw=json.dumps(error).encode())
    return block({"polite": "m06 bot| Go away." not in text})


def test_chat_over_the_context_is_too_long_or_judged_in_windows_where_the_judge_allows(
    settings: Settings,
) -> None:
    chat_set = long_chat()
    with answering(settings, by_window):
        whole = only_verdict(start(chat_set, DIRECT))
        parts = only_verdict(start(chat_set, JudgeSpec("direct", windows=Windows(tokens=3500, overlap=1))))
    assert (whole.state, whole.value, whole.flags) == ("too_long", None, [])
    assert (parts.state, parts.value) == ("read", False)
    assert parts.flags == ["windows:4", "from_window:2"]
    assert parts.explanation.startswith(
        "Judged in 4 overlapping windows; the failing answer in any window decides: "
        "decided by window 3, messages 5 to 7."
    )
    assert list(
        UnitCall.objects.filter(unit=parts.unit).order_by("window").values_list("window", "step", "sample")
    ) == [(window, 1, 0) for window in range(4)]


def with_logprobs(body: Body) -> StubReply:
    tokens = [
        ("What they say.\nVERDICTS\n", -0.1, []),
        ("polite", -0.1, []),
        (":", -0.1, [(":", -0.1)]),
        (" TRUE", math.log(0.75), [(" TRUE", math.log(0.75)), (" FALSE", math.log(0.25))]),
    ]
    content = [
        {"token": token, "logprob": p, "top_logprobs": [{"token": t, "logprob": q} for t, q in top]}
        for token, p, top in tokens
    ]
    message = {"role": "assistant", "content": "".join(token for token, _, _ in tokens)}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
    if body.get("logprobs"):
        choice["logprobs"] = {"content": content}
    return StubReply(raw=json.dumps({"choices": [choice], "usage": {}}).encode())


def test_probability_of_true_is_stored_if_requested_and_returned(settings: Settings) -> None:
    chat_set = workspace("polite", chats=1)
    with answering(settings, with_logprobs) as stub:
        asked = only_verdict(start(chat_set, JudgeSpec("direct", logprobs=True)))
        again = only_verdict(start(chat_set, JudgeSpec("direct", logprobs=True)))
        plain = only_verdict(start(chat_set, DIRECT))
    assert [body.get("logprobs") for body in stub.requests] == [True, None]
    assert asked.p_true == pytest.approx(0.75)
    assert again.p_true == asked.p_true
    assert (plain.value, plain.p_true) == (True, None)


def test_retrieved_passages_are_shown_and_stored_with_the_verdict(settings: Settings, tmp_path: Path) -> None:
    rubric = rubric_of("polite")
    (tmp_path / "parcels.md").write_text("# Parcels\n\nA parcel takes five days.\n\n# Wine\n\nOnly adults.\n")
    knowledge_import(folder=tmp_path)
    CriterionArticle.objects.create(criterion=Criterion.objects.get(), article=KnowledgeArticle.objects.get())
    chat = make_chat("c0", messages=[("user", "Where is my parcel?"), ("assistant", "It is on its way.")])
    chat_set = make_set(rubric, chat)
    with answering(settings, always(True)) as stub:
        run = start(chat_set, JudgeSpec("direct", knowledge="retrieved", passage_tokens=50))
    assert "A parcel takes five days." in json.dumps(stub.requests[0])
    rows = Passage.objects.filter(unit__run=run).select_related("article_version")
    found = [row.article_version.text[row.start : row.end] for row in rows]
    assert "A parcel takes five days." in found[0]
    assert all(row.score > 0 for row in rows)
