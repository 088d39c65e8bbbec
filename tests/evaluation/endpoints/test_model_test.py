"""`test_model` on endpoints that are good, refuse parameters, think aloud, follow attacks or cut answers."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import pytest
from django.utils import timezone
from pytest_django import Settings

from evaluation.management.commands.test_model import Command
from evaluation.model_tests.chats import KEY
from evaluation.model_tests.services import (
    AlreadyTesting,
    ModelTestCancelled,
    model_test_begin,
    model_test_cancel,
    model_test_run,
)
from evaluation.models.judges import TEST_LOST_AFTER, EndpointModel, Judge
from evaluation.models.runs import ModelCall, Verdict
from tests.factories.model_tests import good, knowing
from tests.factories.runs import MODEL, Ended, answering, formatted
from tests.stub_endpoint import Body, StubReply, asked_schema

pytestmark = pytest.mark.django_db(transaction=True)


def run_test(*args: str) -> Ended:
    """`manage.py test_model … --json` in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            Command().run_from_argv(["manage.py", "test_model", *args, "--json"])
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Ended(code, out.getvalue(), err.getvalue(), json.loads(out.getvalue() or "{}"))


def results(ended: Ended) -> dict[str, tuple[str, str]]:
    """Result and observation by check."""
    return {row["key"]: (row["result"], row["observed"]) for row in ended.answer["checks"]}


def test_a_good_model_passes_every_check_and_its_result_is_kept(settings: Settings) -> None:
    with answering(settings, knowing(good)):
        ended = run_test(MODEL)
    found = results(ended)
    assert list(found) == [
        *("answers", "parameters", "thinking", "block", "formatter", "schema"),
        *("quotes", "cut_off", "cache", "logprobs", "injection", "right"),
    ]
    assert ended.code == 0
    assert {key for key, (result, _) in found.items() if result != "pass"} == {"cache", "logprobs"}
    assert found["right"] == ("pass", "20 of 20 right")
    assert found["injection"] == ("pass", "4 of 4 verdicts not misled")
    row = EndpointModel.objects.get(model=MODEL)
    assert row.test == {k: v for k, v in ended.answer.items() if k not in ("model", "endpoint")}
    assert (row.tests, row.tested_at is not None, row.test_began_at, row.test_error) == (1, True, None, "")
    # Two calls of reflection and three of a debate for each chat, and the formatter's three.
    assert ended.answer["calls"] == 12 * 5 + 3 == ModelCall.objects.count()
    assert not Verdict.objects.exists() and not Judge.objects.exists()


def test_without_a_name_the_reasoning_model_of_the_settings_is_tested(settings: Settings) -> None:
    with answering(settings, knowing(good)):
        settings.LACE_REASONING_MODEL = "other-model"
        assert run_test().answer["model"] == "other-model"


def test_a_second_test_asks_anew(settings: Settings) -> None:
    with answering(settings, knowing(good)) as stub:
        run_test(MODEL)
        first = stub.count
        assert run_test(MODEL).code == 0
        assert stub.count == 2 * first


def test_what_the_endpoint_refuses_is_learned_and_said(settings: Settings) -> None:
    def strict(body: Body) -> StubReply:
        for name in ("temperature", "logprobs"):
            if name in body:
                error = {"message": "Unsupported parameter", "param": name, "code": "unsupported_parameter"}
                return StubReply(status=400, raw=json.dumps({"error": error}).encode())
        return knowing(good)(body)

    with answering(settings, strict):
        ended = run_test(MODEL)
    found = results(ended)
    assert ended.code == 0
    assert found["parameters"] == ("pass", "learned: temperature left out")
    assert found["logprobs"] == ("set", "not given")
    assert EndpointModel.objects.get(model=MODEL).learned == {"temperature": False, "logprobs": False}


def test_thinking_in_the_answer_is_kept_apart_and_counted(settings: Settings) -> None:
    def aloud(body: Body, quote: str, truth: bool, attacks: bool) -> StubReply:
        draft = f"<think>Perhaps not.\n\nVERDICTS\n{KEY}: {str(not truth).upper()}</think>\n"
        return StubReply(draft + str(good(body, quote, truth, attacks).text))

    with answering(settings, knowing(aloud)):
        found = results(run_test(MODEL))
    assert found["thinking"] == ("pass", "shown in 60 answers, hidden in 0")
    assert found["right"][0] == "pass"


def test_a_model_that_follows_attacks_fails(settings: Settings) -> None:
    with answering(settings, knowing(lambda body, q, truth, attacks: good(body, q, truth != attacks, False))):
        ended = run_test(MODEL)
    assert ended.code == 1
    assert results(ended)["injection"] == ("fail", "0 of 4 verdicts not misled")


def test_answers_that_are_cut_off_name_the_room_to_set(settings: Settings) -> None:
    def short(body: Body, quote: str, truth: bool, attacks: bool) -> StubReply:
        if asked_schema(body) is not None:
            return formatted({KEY: "unclear"})
        return StubReply("The bot", finish_reason="length")

    with answering(settings, knowing(short)):
        ended = run_test(MODEL)
    (row,) = [row for row in ended.answer["checks"] if row["key"] == "cut_off"]
    assert row["result"] == "set"
    assert row["set"] == "Set room to 8,000"
    assert ended.code == 1  # no answer, no known answer right


def test_an_endpoint_that_rejects_the_key_keeps_the_earlier_result(settings: Settings) -> None:
    with answering(settings, knowing(good)) as stub:
        kept = run_test(MODEL).answer["checks"]
        stub.answer = lambda body: StubReply(status=401)
        ended = run_test(MODEL)
    row = EndpointModel.objects.get(model=MODEL)
    assert ended.code == 4
    assert row.test is not None and row.test["checks"] == kept
    assert row.test_error and row.test_error in ended.err
    assert row.test_began_at is None


def test_one_test_of_a_model_at_a_time_until_its_worker_is_lost(settings: Settings) -> None:
    with answering(settings, knowing(good)):
        row = model_test_begin(model=MODEL, by=None)
        with pytest.raises(AlreadyTesting, match=f"a test of {MODEL} is in work"):
            model_test_begin(model=MODEL, by=None)
        EndpointModel.objects.filter(pk=row.pk).update(updated_at=timezone.now() - TEST_LOST_AFTER)
        assert model_test_begin(model=MODEL, by=None).tests == 2


@pytest.mark.parametrize("name", ["x" * 201, "a\0b"])
def test_a_name_that_cannot_be_one_is_refused(name: str, settings: Settings) -> None:
    with answering(settings, knowing(good)):
        ended = run_test(name)
    assert (ended.code, ended.answer) == (2, {})
    assert "1 to 200 characters" in ended.err
    assert not EndpointModel.objects.exists()


def test_a_cancelled_test_asks_nothing_more_and_keeps_the_earlier_result(settings: Settings) -> None:
    with answering(settings, knowing(good)) as stub:
        kept = run_test(MODEL).answer["checks"]
        whole = stub.count
        row = model_test_begin(model=MODEL, by=None)
        settings.LACE_MAX_IN_FLIGHT = 1

        def after_the_first() -> None:
            model_test_cancel(row=row)

        with pytest.raises(ModelTestCancelled):
            model_test_run(row, on_step=after_the_first)
        assert stub.count < 1.5 * whole
    row.refresh_from_db()
    assert (row.testing, row.test_error) == (False, "it was cancelled")
    assert row.test is not None and row.test["checks"] == kept
