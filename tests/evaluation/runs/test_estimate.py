"""An estimate says what a run would ask and cost, whatever its size, and writes nothing."""

from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from evaluation.core.types import Windows
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, Unit
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import RunChoice
from evaluation.runs.worker import estimate as estimates
from evaluation.runs.worker.estimate import Estimate, evenly_spaced, run_estimate
from labeling.models.chats import ChatSet
from labeling.models.people import Workspace
from tests.factories.rows import make_chat, make_set
from tests.factories.runs import (
    MODEL,
    always,
    answering,
    chats_of,
    evaluate,
    point_at,
    rubric_of,
    the_run,
    workspace,
)
from tests.stub_endpoint import StubReply

pytestmark = pytest.mark.django_db(transaction=True)

DIRECT = ("--set", "calibration", "--engine", "direct")


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.json"
    path.write_text(f'{{"{MODEL}": {{"input": 1, "output": 2}}}}')
    return str(path)


@pytest.fixture
def endpoint(settings: Settings, prices: str) -> None:
    point_at(settings, "http://127.0.0.1:9/v1", prices=prices)


def estimate_of(
    chat_set: ChatSet, judge: JudgeSpec, *, run: RunChoice | None = None, most_chats: int | None = None
) -> Estimate:
    run = run or RunChoice()
    return estimate_for(
        chat_set=chat_set, judge=judge, run=run, endpoint=current_endpoint(), most_chats=most_chats
    )


@pytest.mark.usefixtures("endpoint")
def test_an_estimate_before_the_start_leaves_nothing_behind() -> None:
    found = estimate_of(workspace("polite", "brief", chats=4), JudgeSpec("direct", grouping="criterion"))
    assert (found.chats, found.walked, found.units, found.calls) == (4, 4, 8, 8)
    for model in (Run, Judge, Unit, Workspace):
        assert not model.objects.exists()


@pytest.mark.usefixtures("endpoint")
def test_of_a_large_set_evenly_spaced_chats_are_looked_at_and_scaled_up() -> None:
    chat_set = workspace("polite", chats=40)
    whole, part = (estimate_of(chat_set, JudgeSpec("direct"), most_chats=most) for most in (None, 8))
    assert (part.chats, part.walked, part.units, part.calls) == (40, 8, 40, 40)
    assert part.prompt_tokens == pytest.approx(whole.prompt_tokens, rel=0.02)
    assert part.cost_usd is not None and whole.cost_usd is not None
    assert float(part.cost_usd) == pytest.approx(float(whole.cost_usd), rel=0.02)


def test_evenly_spaced_takes_the_whole_length() -> None:
    assert evenly_spaced(range(10), 5) == [0, 2, 4, 6, 8]
    assert evenly_spaced([1, 2], 5) == [1, 2]


@pytest.mark.heavy
@pytest.mark.usefixtures("endpoint")
def test_queries_do_not_grow_with_calls() -> None:
    counted = []
    rubric = rubric_of("polite", "brief", "kind")
    small = make_set(rubric, *chats_of(4), name="small")
    large = make_set(rubric, *[m.chat for m in small.members.all()], name="large")
    for judge in (JudgeSpec("direct", grouping="rubric"), JudgeSpec("direct", grouping="criterion")):
        with CaptureQueriesContext(connection) as queries:
            estimate_of(large, judge)
        counted.append(len(queries))
    assert counted[1] <= counted[0] + 4  # rows of two more groups, no query for a call


@pytest.mark.usefixtures("endpoint")
def test_both_layouts_are_weighed() -> None:
    chat_set = workspace("polite", "brief", chats=5)
    found = estimate_of(chat_set, JudgeSpec("direct", grouping="criterion"))
    assert found.layout == "criteria_first"
    shares = found.repeated
    assert set(shares) == {"criteria_first", "chat_first"}
    assert all(share is not None and 0 < share < 1 for share in shares.values())
    # Short chats, long rules: what stands before the chat repeats for every chat.
    assert (shares["criteria_first"] or 0) > (shares["chat_first"] or 0)


@pytest.mark.usefixtures("endpoint")
def test_samples_and_windows_are_counted() -> None:
    chats = chats_of(2, text="Where is my order? " * 200)
    chat_set = make_set(rubric_of("polite"), *chats)
    one = estimate_of(chat_set, JudgeSpec("direct"))
    assert estimate_of(chat_set, JudgeSpec("direct", samples=3)).calls == 3 * one.calls
    assert (one.windowed, one.calls) == (0, 2)
    cut = estimate_of(chat_set, JudgeSpec("direct", windows=Windows(tokens=500, overlap=0)))
    assert (cut.windowed, cut.units) == (2, 2)
    assert cut.calls > one.calls


@pytest.mark.usefixtures("endpoint")
def test_an_audit_of_a_share_counts_about_that_share_of_the_answers() -> None:
    chat_set = workspace("polite", chats=40)
    calls = [
        estimate_of(chat_set, JudgeSpec("direct"), run=RunChoice(audit=share)).calls for share in (0, 0.5, 1)
    ]
    assert (calls[0], calls[2]) == (40, 80)
    assert 50 <= calls[1] <= 70


@pytest.mark.usefixtures("endpoint")
def test_a_budget_is_held_against_the_cost() -> None:
    chat_set, judge = workspace("polite", chats=2), JudgeSpec("direct")
    cost = estimate_of(chat_set, judge).cost_usd
    assert cost is not None
    for budget, fits in ((cost, True), (cost / 2, False)):
        run = RunChoice(budget_usd=budget)
        assert estimate_of(chat_set, judge, run=run).fits_budget is fits
    half = estimate_of(chat_set, judge, run=RunChoice(budget_usd=cost / 2, mode=Run.Mode.BATCH))
    assert (half.cost_usd, half.fits_budget) == (cost / 2, True)


def test_without_prices_neither_cost_nor_budget_is_guessed(settings: Settings) -> None:
    point_at(settings, "http://127.0.0.1:9/v1")
    found = estimate_of(
        workspace("polite", chats=1), JudgeSpec("direct"), run=RunChoice(budget_usd=Decimal(5))
    )
    assert (found.cost_usd, found.fits_budget) == (None, None)


def test_twin_chats_are_asked_about_once(settings: Settings) -> None:
    chat_set = workspace("polite", chats=3)
    one, two, _ = (member.chat for member in chat_set.members.order_by("id"))
    two.messages, two.content_hash = one.messages, one.content_hash
    two.save()
    with answering(settings, always(True)) as stub:
        planned = evaluate(*DIRECT, "--dry-run").answer
        evaluate(*DIRECT)
        assert planned["calls"] == stub.count == 2
    assert planned["reused"] == 1


def test_a_resumed_run_is_estimated_from_what_is_left(settings: Settings, prices: str) -> None:
    workspace("polite", chats=4)
    replies = iter([True, True])

    def answer(body):
        return always(True)(body) if next(replies, False) else StubReply(raw=b"x" * 1_100_000)

    with answering(settings, answer, prices=prices):
        assert evaluate(*DIRECT, "--budget", "100").code == 4
        before = Run.objects.values().get()
        planned = evaluate("--resume", str(the_run().pk), "--dry-run").answer
    assert (planned["chats"], planned["units"], planned["calls"], planned["reused"]) == (2, 2, 2, 0)
    assert planned["fits_budget"] is True
    assert Run.objects.values().get() == before


def test_the_dry_run_says_it_in_words(settings: Settings, prices: str, capsys) -> None:
    workspace("polite", chats=3)
    with answering(settings, always(True), prices=prices):
        call_command("evaluate", *DIRECT, "--dry-run", "--batch", "--budget", "0.0001")
    said = capsys.readouterr().out
    assert "3 chats, 3 units: 3 calls" in said
    assert "at the Batch API's half price" in said
    assert "criteria first: " in said and "(this judge)" in said
    assert "chat first: " in said
    assert "budget $0.0001: may not be sufficient" in said


@pytest.mark.usefixtures("endpoint")
def test_a_walk_in_many_chunks_is_the_same_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    chat_set = workspace("polite", "brief", chats=7)
    whole = estimate_of(chat_set, JudgeSpec("debate"))
    monkeypatch.setattr(estimates, "CHUNK", 1)
    assert estimate_of(chat_set, JudgeSpec("debate")) == whole


@pytest.mark.usefixtures("endpoint")
def test_an_estimate_of_a_planned_run_agrees_with_the_one_before_it(settings: Settings) -> None:
    workspace("polite", chats=3)
    with answering(settings, always(True)) as stub:
        planned = evaluate(*DIRECT, "--dry-run").answer
        stub.answer = lambda body: StubReply(status=401, raw=b"{}")
        evaluate(*DIRECT)
        assert run_estimate(the_run()).as_json() == planned


def test_other_scripts_need_more_tokens_than_english(settings: Settings, prices: str) -> None:
    point_at(settings, "http://127.0.0.1:9/v1", prices=prices)
    texts = {"en": "Where is my order? " * 50, "ru": "Где мой заказ? " * 50, "zh": "我的订单在哪里？" * 50}
    rubric, most, expected = rubric_of("polite"), {}, {}
    for name, text in texts.items():
        chat = make_chat(name, messages=[("user", text)])
        found = estimate_of(make_set(rubric, chat, name=name), JudgeSpec("direct"))
        most[name], expected[name] = found.prompt_tokens, found.expected_prompt_tokens
    empty = make_chat("empty", messages=[("user", "x")])
    rules = estimate_of(make_set(rubric, empty, name="empty"), JudgeSpec("direct"))
    a_character = {
        name: (most[name] - rules.prompt_tokens) / len(text.strip()) for name, text in texts.items()
    }
    assert 0.2 <= a_character["en"] <= 0.3
    assert 0.4 <= a_character["ru"] <= 0.6
    assert 0.9 <= a_character["zh"] <= 1.2
    assert expected["en"] == pytest.approx(most["en"], abs=1)
    assert expected["zh"] < most["zh"]


def test_expected_stands_beside_the_worst_case_and_learns_from_stored_answers(
    settings: Settings, prices: str, capsys
) -> None:
    chat_set = workspace("polite", chats=8)
    with answering(settings, always(True), prices=prices):
        before = estimate_of(chat_set, JudgeSpec("direct"))
        done = evaluate(*DIRECT).answer
        again = estimate_of(chat_set, JudgeSpec("direct"), run=RunChoice(replicate=1))
        shown = evaluate(*DIRECT, "--replicate", "1", "--dry-run").answer
        call_command("evaluate", *DIRECT, "--replicate", "1", "--dry-run")
    assert before.learned == 0
    assert before.expected_completion_tokens < before.completion_tokens == again.completion_tokens
    assert again.learned == 1
    assert again.expected_completion_tokens == pytest.approx(done["completion_tokens"], rel=0.01)
    assert again.expected_prompt_tokens == pytest.approx(done["prompt_tokens"], rel=0.02)
    assert shown["expected_cost_usd"] == pytest.approx(done["cost_usd"], rel=0.02)
    assert shown["expected_cost_usd"] < shown["cost_usd"]
    said = capsys.readouterr().out
    assert "expected: " in said and "at most: " in said
    assert "100% of the answer lengths from stored answers" in said


def test_a_budget_between_expected_and_worst_is_expected_to_be_sufficient(
    settings: Settings, prices: str, capsys
) -> None:
    chat_set = workspace("polite", chats=8)
    with answering(settings, always(True), prices=prices):
        evaluate(*DIRECT)
        found = estimate_of(chat_set, JudgeSpec("direct"), run=RunChoice(replicate=1))
        assert found.cost_usd is not None and found.expected_cost_usd is not None
        budget = f"{(found.cost_usd + found.expected_cost_usd) / 2:.4f}"
        call_command("evaluate", *DIRECT, "--replicate", "1", "--dry-run", "--budget", budget)
    assert "may not be sufficient, but is expected to be" in capsys.readouterr().out
