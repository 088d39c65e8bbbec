"""A run through the Batch API reaches the live mode's verdicts at half the price, whatever happens."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from evaluation.models.runs import Attempt, Batch, ModelCall, Run, Unit, UnitCall, Verdict
from evaluation.runner import batch as runner
from evaluation.runner import batch_rows
from evaluation.runner.batch import BatchStep, batch_advance, batches_to_stop
from evaluation.runner.turns import run_turn
from evaluation.services.control import run_cancel, run_pause
from evaluation.tasks import sweep
from tests.evaluation.running import (
    MODEL,
    always,
    block,
    chats_of,
    environment,
    evaluate,
    outcomes,
    point_at,
    rubric_of,
    the_run,
    verdicts_of,
    workspace,
)
from tests.factories import make_criterion, make_set
from tests.stub_batches import StubBatches
from tests.stub_endpoint import Answer, StubReply, case_of, planted_judge

pytestmark = pytest.mark.django_db(transaction=True)

TRUTH = {f"c{n}": {"polite": n % 2 == 0, "wrong_fact": n == 0, "happy": None} for n in range(4)}
DIRECT = ("--set", "calibration", "--engine", "direct")


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.json"
    path.write_text(f'{{"{MODEL}": {{"input": 1000, "output": 2000}}}}')
    return str(path)


@contextmanager
def batching(settings: Settings, answer: Answer, *, prices: str = "") -> Iterator[StubBatches]:
    with StubBatches(answer) as stub:
        point_at(settings, stub.base_url, prices=prices)
        settings.LACE_BATCH_POLL_SECONDS = 0.01
        yield stub


def mixed_set(chats: int = 3) -> None:
    rubric = rubric_of("polite")
    make_criterion("wrong_fact", rubric=rubric, tier="context", passes_when=False)
    make_criterion("happy", rubric=rubric, tier="subjective", allow_na=True)
    make_set(rubric, *chats_of(chats))


def planned(settings: Settings, stub: StubBatches, *args: str) -> Run:
    """A batch run that has been started and not yet stepped."""
    stub.behaviour.has_api = False
    assert evaluate(*DIRECT, "--batch", *args).code == 4
    stub.behaviour.has_api = True
    run = the_run()
    Run.objects.filter(pk=run.pk).update(state="running", error="")
    return run


def stepped(run: Run, *, most: int = 20) -> BatchStep:
    """Step until nothing is waited for."""
    for _ in range(most):
        step = batch_advance(run)
        if not step.waiting:
            return step
    raise AssertionError(f"still waiting after {most} steps: {step}")


WAVES = {"direct": 1, "reflection": 2, "debate": 2, "auto": 2}


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


def test_a_batch_costs_half(settings: Settings, prices: str) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True), prices=prices):
        half = evaluate(*DIRECT, "--batch").answer["cost_usd"]
        foretold = evaluate(*DIRECT, "--batch", "--replicate", "1", "--dry-run").answer["cost_usd"]
        live = evaluate(*DIRECT, "--replicate", "1").answer["cost_usd"]
        full = evaluate(*DIRECT, "--replicate", "2", "--dry-run").answer["cost_usd"]
    assert half == pytest.approx(live / 2)
    assert half > 0
    assert foretold == pytest.approx(full / 2)


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


def test_a_batch_the_endpoint_does_not_take_pauses_the_run(settings: Settings, prices: str) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True), prices=prices) as stub:
        stub.behaviour.ends = "failed"
        ended = evaluate(*DIRECT, "--batch", "--budget", "100")
        assert ended.code == 4
        assert "did not take the batch (token_limit_exceeded)" in ended.error
        assert the_run().committed_usd == 0
        stub.behaviour.ends = "completed"
        assert evaluate("--resume", str(the_run().pk)).code == 0


def test_requests_no_file_tells_of_may_have_been_billed(settings: Settings) -> None:
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


# ---- money


def test_a_budget_pauses_a_batch_run_before_too_much_is_sent(settings: Settings, prices: str) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True), prices=prices) as stub:
        ended = evaluate(*DIRECT, "--batch", "--budget", "0.01")
        assert (ended.code, stub.steps) == (3, [])
        assert "the budget" in ended.error
        assert evaluate("--resume", str(the_run().pk), "--budget", "1000").code == 0
    run = the_run()
    assert run.committed_usd == run.cost_usd
    assert run.cost_usd and run.cost_usd < 1000


def test_what_a_budget_has_no_room_for_waits_until_money_is_freed(settings: Settings, prices: str) -> None:
    workspace("polite", chats=4)
    with batching(settings, always(True), prices=prices) as stub:
        evaluate(*DIRECT, "--batch", "--limit", "1", "--budget", "1000", "--replicate", "9")
        worst = Attempt.objects.get().reserved_usd
        assert worst is not None
        budget = (worst * Decimal("2.5")).quantize(Decimal("0.0001"))
        assert evaluate(*DIRECT, "--batch", "--budget", str(budget)).code == 0
        sizes = [len(stub._requests(batch)) for batch in stub.batches.values()][1:]
    assert sizes[0] == 2
    assert sum(sizes) == 4
    assert the_run().committed_usd == the_run().cost_usd


# ---- kill -9 between any two steps


@pytest.mark.parametrize("lost", ["upload", "create"])
def test_a_step_whose_reply_was_lost_is_not_done_twice(settings: Settings, lost: str) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        stub.behaviour.lose = [lost]
        assert batch_advance(run).trouble
        stepped(run)
        assert stub.steps.count("upload") == stub.steps.count("create") == 1
    assert run.state == "done"
    assert outcomes() == ["answered", "answered"]


def test_a_process_that_is_killed_while_it_waits_leaves_its_batch_to_the_next(settings: Settings) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True)) as stub:
        stub.behaviour.polls = 3
        command = [sys.executable, "manage.py", "evaluate", *DIRECT, "--batch"]
        environ = environment(stub.base_url, LACE_BATCH_POLL_SECONDS="1")
        with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as process:
            while "look" not in stub.steps:
                time.sleep(0.05)
            process.kill()
        assert evaluate("--resume", str(the_run().pk)).code == 0
        assert stub.steps.count("upload") == stub.steps.count("create") == 1
    assert outcomes() == ["answered"] * 3


class Killed(BaseException):
    """Stands for a kill -9."""


KILLS = {
    "before the upload": ("BatchClient", "upload"),
    "before the creation": ("BatchClient", "create"),
    "before the answers": ("BatchClient", "answers"),
    "before the batch is closed": ("Collector", "end"),
}


@pytest.mark.parametrize("moment", list(KILLS))
def test_a_killed_step_is_taken_up_where_it_was(
    settings: Settings, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace("polite", chats=3)
    owner, method = KILLS[moment]

    def kill(*args, **kwargs):
        raise Killed

    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        with monkeypatch.context() as patched:
            patched.setattr(getattr(runner, owner), method, kill)
            with pytest.raises(Killed):
                stepped(run)
        stepped(run)
        assert stub.steps.count("upload") == stub.steps.count("create") == len(stub.batches) == 1
        assert len(stub.asked) == 3
    assert outcomes() == ["answered"] * 3
    assert Verdict.objects.filter(value=True).count() == 3


def test_a_process_that_steps_keeps_others_waiting(settings: Settings) -> None:
    workspace("polite", chats=1)
    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        steps: list[BatchStep] = []

        def other() -> None:
            steps.append(batch_advance(Run.objects.get(pk=run.pk)))
            connection.close()

        lease = runner._lease(run)
        assert lease is not None
        # As another process would see it: ours, under a process id that is not the asker's.
        type(lease).objects.filter(pk=lease.pk).update(pid=1)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert steps == [BatchStep(waiting=True)]
        assert stub.steps == []
        lease.delete()
        stepped(run)
    assert run.state == "done"


# ---- pause and cancel


@pytest.mark.parametrize("state", ["paused", "cancelled"])
def test_stopping_a_run_cancels_its_batch_and_keeps_what_was_answered(settings: Settings, state: str) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True)) as stub:
        stub.behaviour.polls, stub.behaviour.answered = 99, 1
        run = planned(settings, stub)
        assert batch_advance(run).requests == 3
        {"paused": run_pause, "cancelled": run_cancel}[state](run=run, by=None)
        assert batches_to_stop(every=30) == [run.pk]
        sweep()
        assert stub.steps.count("cancel") == 1
        assert batches_to_stop(every=0) == []
        run.refresh_from_db()
        assert (run.state, outcomes()) == (state, ["answered", "cancelled", "cancelled"])
        stub.behaviour.polls = 1
        if state == "paused":
            assert evaluate("--resume", str(run.pk)).code == 0
            assert len(stub.asked) == 3


def test_trouble_and_ctrl_c_leave_batches_at_the_endpoint(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        stub.behaviour.polls = 3
        run = planned(settings, stub)
        batch_advance(run)
        Run.objects.filter(pk=run.pk).update(state="paused", error="interrupted")
        sweep()
        assert not batch_advance(run).waiting
        assert "cancel" not in stub.steps
        assert evaluate("--resume", str(run.pk)).code == 0
        assert stub.steps.count("create") == 1


def test_a_worker_steps_a_batch_run_by_turns(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        stub.behaviour.fail = 1
        turns = [run_turn(run.pk)]
        run.refresh_from_db()
        assert (run.state, "503" in run.error) == ("running", True)
        while turns[-1].again:
            turns.append(run_turn(run.pk))
        assert all(turn.wait == 0.01 for turn in turns)
    run.refresh_from_db()
    assert (run.state, run.error) == ("done", "")


def test_a_batch_that_was_never_sent_is_withdrawn(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        stub.behaviour.fail = 1
        assert batch_advance(run).trouble
        run_cancel(run=run, by=None)
        sweep()
        assert stub.batches == {}
    assert outcomes() == ["cancelled", "cancelled"]
    assert Batch.objects.get().state == "failed"


def test_a_batch_cancelled_at_the_endpoint_pauses_the_run(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        stub.behaviour.ends, stub.behaviour.answered = "cancelled", 1
        ended = evaluate(*DIRECT, "--batch")
        assert ended.code == 4
        assert "was cancelled at the endpoint" in ended.error
        stub.behaviour.ends = "completed"
        assert evaluate("--resume", str(the_run().pk)).code == 0
    assert Unit.objects.filter(state="done").count() == 2


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
