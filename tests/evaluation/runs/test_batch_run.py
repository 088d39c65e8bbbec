"""A run through the Batch API reaches the live mode's verdicts, whatever becomes of its lines."""

import pytest
from pytest_django import Settings

from evaluation.models.runs import Attempt, Batch, ModelCall, Run, UnitCall, Verdict
from evaluation.runs.worker import batch_rows
from evaluation.runs.worker.batch import batch_advance
from tests.factories.batches import DIRECT, batching, planned, stepped
from tests.factories.rows import make_criterion, make_set
from tests.factories.runs import (
    always,
    block,
    chats_of,
    evaluate,
    outcomes,
    rubric_of,
    the_run,
    verdicts_of,
    workspace,
)
from tests.stub_endpoint import StubReply, case_of, planted_judge

pytestmark = pytest.mark.django_db(transaction=True)

TRUTH = {f"c{n}": {"polite": n % 2 == 0, "wrong_fact": n == 0, "happy": None} for n in range(4)}
WAVES = {"direct": 1, "reflection": 2, "debate": 2, "auto": 2}


def mixed_set(chats: int = 3) -> None:
    rubric = rubric_of("polite")
    make_criterion("wrong_fact", rubric=rubric, tier="context", passes_when=False)
    make_criterion("happy", rubric=rubric, tier="subjective", allow_na=True)
    make_set(rubric, *chats_of(chats))


@pytest.mark.parametrize("engine", list(WAVES))
def test_the_verdicts_are_those_of_the_live_mode(settings: Settings, engine: str) -> None:
    mixed_set()
    args = ("--set", "calibration", "--engine", engine)
    with batching(settings, planted_judge(TRUTH, tpr=0.7, tnr=0.7, with_block=False)) as stub:
        batch = evaluate(*args, "--batch")
        assert (batch.code, stub.count) == (0, 0)
        through_batches = the_run()
        live = evaluate(*args, "--replicate", "1")
        assert live.code == 0
    assert verdicts_of(through_batches) == verdicts_of(the_run())
    columns = ("chat", "criterion", "read_by", "sided_with", "explanation", "flags", "first_value")
    first, second = (
        list(run.verdicts.order_by("chat", "criterion").values(*columns))
        for run in (through_batches, the_run())
    )
    assert first == second
    for key in ("verdicts", "unparsed", "calls", "reused", "prompt_tokens", "completion_tokens"):
        assert batch.answer[key] == live.answer[key], key
    # With formatter calls each pass needs a wave more.
    assert Batch.objects.count() <= 2 * WAVES[engine]
    assert set(Batch.objects.values_list("state", flat=True)) == {"collected"}
    assert (through_batches.prompt_chars > 0) and (through_batches.mode == "batch")


def test_samples_are_asked_in_the_same_wave(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)):
        assert evaluate(*DIRECT, "--batch", "--samples", "3").code == 0
    assert Batch.objects.get().requests == the_run().calls


def test_every_request_is_on_record_with_its_batch(settings: Settings) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True)) as stub:
        evaluate(*DIRECT, "--batch")
        assert len(stub.lines) == Attempt.objects.count() == 3
    assert set(Attempt.objects.values_list("batch__batch_id", "outcome")) == {("batch_2", "answered")}
    assert list(UnitCall.objects.values_list("reused", flat=True)) == [False] * 3
    assert {line["custom_id"] for line in stub.lines} == set(ModelCall.objects.values_list("key", flat=True))


def test_what_is_answered_already_is_not_asked_again(settings: Settings) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True)) as stub:
        evaluate(*DIRECT, "--limit", "2")
        ended = evaluate(*DIRECT, "--batch")
        assert len(stub.lines) == 1
        again = evaluate(*DIRECT, "--batch")
        assert len(stub.batches) == 1
    assert (ended.answer["calls"], ended.answer["reused"]) == (1, 2)
    assert (again.code, again.answer["calls"], again.answer["reused"]) == (0, 0, 3)


def test_the_same_question_in_two_units_is_asked_once(settings: Settings) -> None:
    chat_set = workspace("polite", chats=2)
    one, two = (member.chat for member in chat_set.members.order_by("id"))
    two.messages, two.content_hash = one.messages, one.content_hash
    two.save()
    with batching(settings, always(True)) as stub:
        assert evaluate(*DIRECT, "--batch").code == 0
        assert len(stub.lines) == 1
    assert Verdict.objects.count() == 2


def test_a_file_has_one_model_and_its_limits(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace("polite", chats=5)
    monkeypatch.setattr(batch_rows, "MOST_REQUESTS", 2)
    with batching(settings, always(True)) as stub:
        assert evaluate(*DIRECT, "--batch").code == 0
        assert [len(stub._requests(batch)) for batch in stub.batches.values()] == [2, 2, 1]
        size = max(len(file.content) for file in stub.files.values() if file.name.startswith("lace-"))
        monkeypatch.setattr(batch_rows, "MOST_BYTES", size // 2 + 1)
        assert evaluate(*DIRECT, "--batch", "--replicate", "1").code == 0
    assert sorted(Batch.objects.values_list("requests", flat=True)) == [1] * 6 + [2, 2]


def test_lines_that_failed_are_asked_again_in_the_next_wave(settings: Settings) -> None:
    workspace("polite", chats=2)
    failures = iter([StubReply(status=500, raw=b"{}"), StubReply(status=429, raw=b"{}")])

    def answer(body):
        return next(failures, None) or always(True)(body)

    with batching(settings, answer):
        assert evaluate(*DIRECT, "--batch").code == 0
    assert outcomes() == ["server_error", "rate_limited", "answered", "answered"]
    assert Batch.objects.count() == 2


def test_a_line_that_fails_for_ever_fails_its_unit_alone(settings: Settings) -> None:
    workspace("polite", chats=2)

    def answer(body):
        broken = case_of(body, TRUTH) == "c1"
        return StubReply(status=500, raw=b"{}") if broken else always(True)(body)

    with batching(settings, answer) as stub:
        ended = evaluate(*DIRECT, "--batch")
        assert (ended.code, ended.answer["state"]) == (4, "done_with_failures")
        assert verdicts_of(the_run()) == {
            ("c0", "polite"): ("read", True),
            ("c1", "polite"): ("failed", None),
        }
        stub.answer = always(False)
        again = evaluate("--resume", str(the_run().pk))
    assert (again.code, again.answer["state"]) == (0, "done")
    assert verdicts_of(the_run()) == {("c0", "polite"): ("read", True), ("c1", "polite"): ("read", False)}


def test_refused_cut_off_and_too_long_have_their_states(settings: Settings) -> None:
    workspace("polite", chats=3)
    too_long = b'{"error": {"code": "context_length_exceeded"}}'
    replies = {
        "c0": StubReply("", refusal="No."),
        "c1": StubReply("half", finish_reason="length"),
        "c2": StubReply(status=400, raw=too_long),
    }
    with batching(settings, lambda body: replies[case_of(body, TRUTH)]):
        assert evaluate(*DIRECT, "--batch").code == 0
    states = {chat: state for (chat, _), (state, _) in verdicts_of(the_run()).items()}
    assert states == {"c0": "refused", "c1": "cut_off", "c2": "too_long"}


def test_a_batch_that_expired_is_completed_by_the_next(settings: Settings) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True)) as stub:
        stub.behaviour.ends, stub.behaviour.answered = "expired", 2
        assert evaluate(*DIRECT, "--batch").code == 0
    assert outcomes() == ["answered", "answered", "cancelled", "answered"]


def test_a_batch_that_expired_without_an_answer_pauses_the_run(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        stub.behaviour.ends, stub.behaviour.answered = "expired", 0
        ended = evaluate(*DIRECT, "--batch")
        assert (ended.code, ended.answer["state"]) == (4, "paused")
        assert "expired before anything was answered" in ended.error
        stub.behaviour.ends = "completed"
        assert evaluate("--resume", str(the_run().pk)).code == 0
    assert Verdict.objects.count() == 2


def test_requests_without_an_answer_file_may_have_been_billed(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        stub.behaviour.skip_lines = {1}
        run = planned(settings, stub)
        batch_advance(run)
        batch_advance(run)
        stub.behaviour.skip_lines = set()
        stepped(run)
    assert outcomes() == ["answered", "unknown_maybe_billed", "answered"]
    assert Verdict.objects.filter(state="read").count() == 2


def test_an_endpoint_without_a_batch_api_is_said_in_one_line(settings: Settings) -> None:
    workspace("polite", chats=1)
    with batching(settings, always(True)) as stub:
        stub.behaviour.has_api = False
        ended = evaluate(*DIRECT, "--batch")
    assert ended.code == 4
    assert "the endpoint has no Batch API" in ended.error


def test_an_endpoint_that_cannot_be_reached_for_a_while_is_asked_again(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        stub.behaviour.fail = 5
        assert evaluate(*DIRECT, "--batch").code == 0
        assert len(stub.batches) == 1


def test_a_debates_judge_reads_the_briefs_of_the_first_wave(settings: Settings) -> None:
    workspace("wrong_fact", chats=1, passes_when=False)

    def debater(body):
        asked = body["messages"][-1]["content"]
        if "Your duty: judge" in asked:
            return block({"wrong_fact": True})
        side = "customer" if "the customer's brief" in asked else "support"
        return StubReply(f"wrong_fact\nThe {side}-side case.")

    with batching(settings, debater) as stub:
        assert evaluate("--set", "calibration", "--engine", "debate", "--batch").code == 0
        waves = [stub._requests(batch) for batch in stub.batches.values()]
    assert [len(lines) for lines in waves] == [2, 1]
    judged = waves[1][0]["body"]["messages"][-1]["content"]
    assert "The customer-side case." in judged and "The support-side case." in judged


def test_the_embedded_model_has_no_batch_api(settings: Settings) -> None:
    workspace("polite", chats=1)
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""
    ended = evaluate(*DIRECT, "--batch")
    assert ended.code == 2
    assert "no Batch API" in ended.error
    assert not Run.objects.exists()
