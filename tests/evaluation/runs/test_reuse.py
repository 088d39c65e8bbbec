"""What was asked and answered is never asked again; what changed is."""

import hashlib

import pytest
from pytest_django import Settings

from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.models.runs import ModelCall, Run, UnitCall, Verdict
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_set
from tests.factories.runs import (
    always,
    answering,
    block,
    by_role,
    evaluate,
    formatted,
    rubric_of,
    the_run,
    verdicts_of,
    workspace,
)
from tests.stub_endpoint import Body, StubReply, asked_keys, case_of

pytestmark = pytest.mark.django_db(transaction=True)
CASES = [f"c{n}" for n in range(4)]
RUN = ("--set", "calibration", "--engine", "direct", "--grouping", "criterion")


def unmarked(body: Body) -> StubReply:
    """Prose without a block, another one for every chat."""
    return StubReply(f"Kind throughout in {case_of(body, {key: {} for key in CASES})}.")


def too_big(body: Body) -> StubReply:
    return StubReply(raw=b"x" * 1_100_000)


def promote(key: str, text: str) -> None:
    """Make this text the criterion's champion."""
    criterion = Criterion.objects.get(key=key)
    prompt = PromptVersion.objects.create(
        criterion=criterion, number=2, text=text, content_hash=hashlib.sha256(text.encode()).hexdigest()
    )
    Promotion.objects.create(criterion=criterion, version=prompt)


@pytest.mark.parametrize("engine", ["direct", "reflection", "debate"])
def test_the_same_run_again_sends_nothing(settings: Settings, engine: str) -> None:
    workspace("polite", "clear", chats=3)
    with answering(settings, always(True)) as stub:
        first = evaluate("--set", "calibration", "--engine", engine).answer
        sent = stub.count
        again = evaluate("--set", "calibration", "--engine", engine).answer
        assert stub.count == sent == first["calls"]
    assert (again["calls"], again["reused"], again["cost_usd"]) == (0, sent, 0)
    assert (again["prompt_tokens"], again["completion_tokens"]) == (0, 0)
    one, two = Run.objects.order_by("id")
    assert one.judge_id == two.judge_id
    assert verdicts_of(one) == verdicts_of(two)


def test_resuming_a_run_that_is_done_changes_nothing(settings: Settings) -> None:
    workspace("polite")
    with answering(settings, always(True)) as stub:
        first = evaluate(*RUN)
        before = Run.objects.values().get()
        again = evaluate("--resume", str(first.answer["run"]))
        assert stub.count == 3
    assert (again.code, again.answer) == (0, first.answer)
    assert Run.objects.values().get() == before


def test_a_replicate_asks_everything_again(settings: Settings) -> None:
    workspace("polite")
    with answering(settings, always(True)) as stub:
        evaluate(*RUN)
        anew = evaluate(*RUN, "--replicate", "1").answer
        assert stub.count == 6
        evaluate(*RUN, "--replicate", "1")
        assert stub.count == 6
    assert (anew["calls"], anew["reused"]) == (3, 0)
    assert len(set(Run.objects.values_list("judge", flat=True))) == 1


def test_a_changed_prompt_asks_its_own_group_only(settings: Settings) -> None:
    workspace("polite", "clear", "short")
    with answering(settings, always(True)) as stub:
        evaluate(*RUN)
        promote("clear", "# Objective\nIs clear so? Say it in French.")
        evaluate(*RUN)
        asked = [asked_keys(body) for body in stub.requests[9:]]
    assert asked == [["clear"]] * 3
    assert the_run().reused == 6


def test_two_units_that_ask_the_same_question_at_once_send_it_once(settings: Settings) -> None:
    same = [("user", "Where is it?"), ("assistant", "On its way.")]
    make_set(rubric_of("polite"), *(make_chat(f"twin-{n}", messages=same) for n in range(4)))
    with answering(settings, lambda body: StubReply(block({"polite": True}).text, delay=0.3)) as stub:
        ended = evaluate(*RUN)
        assert stub.count == 1
    assert (ended.answer["verdicts"], ended.answer["calls"], ended.answer["reused"]) == (4, 1, 3)
    assert ModelCall.objects.count() == 1
    assert sorted(UnitCall.objects.values_list("reused", flat=True)) == [False, True, True, True]


def test_a_failed_formatter_call_never_costs_a_reasoning_call_again(settings: Settings) -> None:
    workspace("polite", chats=4)
    with answering(settings, by_role(reasoning=unmarked, formatter=too_big)) as stub:
        failed = evaluate(*RUN)
        assert (failed.code, failed.answer["state"], stub.count) == (4, "done_with_failures", 8)
        stub.answer = by_role(
            reasoning=lambda body: pytest.fail("a stored answer was asked again"),
            formatter=lambda body: formatted({"polite": "true"}),
        )
        ended = evaluate("--resume", str(failed.answer["run"]))
        assert stub.count == 12
    assert (ended.code, ended.answer["state"], ended.answer["verdicts"]) == (0, "done", 4)
    assert set(Verdict.objects.values_list("state", "value", "read_by")) == {("read", True, "formatter")}


def test_a_resumed_run_counts_what_it_paid_for_before(settings: Settings) -> None:
    workspace("polite", chats=2)
    with answering(settings, by_role(reasoning=unmarked, formatter=too_big)) as stub:
        failed = evaluate(*RUN).answer
        formatter = formatted({"polite": "false"})
        stub.answer = by_role(reasoning=unmarked, formatter=lambda body: formatter)
        done = evaluate("--resume", str(failed["run"])).answer
    assert (done["calls"], done["reused"]) == (4, 0)
    assert done["prompt_tokens"] == sum(call.prompt_tokens or 0 for call in ModelCall.objects.all())
    assert done["prompt_tokens"] > failed["prompt_tokens"] > 0
