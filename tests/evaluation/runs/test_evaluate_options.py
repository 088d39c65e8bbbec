"""Options of `evaluate` become the judge's recipe and the run's terms."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.judges.core.spec import JudgeSpec, spec_to_json
from evaluation.management.options import JUDGE_OPTIONS, PLAN_OPTIONS, WINDOW_OPTIONS, chosen_judge
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.runs import Run
from tests.factories.runs import MODEL, always, answering, evaluate, the_run, workspace

pytestmark = pytest.mark.django_db(transaction=True)

DIRECT = ("--set", "calibration", "--engine", "direct")


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.json"
    path.write_text(f'{{"{MODEL}": {{"input": 1000, "output": 2000}}}}')
    return str(path)


def given(**options: Any) -> dict[str, Any]:
    return dict.fromkeys((*JUDGE_OPTIONS, *WINDOW_OPTIONS, "profile")) | options


def test_options_left_out_are_the_defaults() -> None:
    assert chosen_judge(given(engine="debate")) == JudgeSpec("debate")


def test_every_option_of_a_judge_reaches_its_recipe() -> None:
    chosen = chosen_judge(
        given(
            engine="debate",
            model="big",
            formatter="small",
            grouping="rubric",
            knowledge="retrieved",
            samples=3,
            role_in="system",
            layout="chat_first",
            logprobs=True,
            ablation="placebo_briefs",
            window_tokens=9000,
            window_rule="last_decides",
        ),
    )
    assert spec_to_json(chosen) == spec_to_json(JudgeSpec("debate")) | {
        "model": "big",
        "formatter": "small",
        "grouping": "rubric",
        "knowledge": "retrieved",
        "samples": 3,
        "role_in": "system",
        "layout": "chat_first",
        "logprobs": True,
        "ablation": "placebo_briefs",
        "windows": {"tokens": 9000, "overlap": 4, "rule": "last_decides"},
    }


def test_what_is_given_beside_a_profile_comes_first() -> None:
    recipe = spec_to_json(JudgeSpec("debate", model="big", samples=5)) | {
        "windows": {"tokens": 9000, "overlap": 2, "rule": "any_fails"}
    }
    JudgeProfile.objects.create(name="careful", config=recipe)
    chosen = chosen_judge(given(profile="careful", samples=3, window_rule="last_decides"))
    assert (chosen.engine, chosen.model, chosen.samples) == ("debate", "big", 3)
    assert chosen.windows is not None
    assert (chosen.windows.tokens, chosen.windows.overlap, chosen.windows.rule) == (9000, 2, "last_decides")


def test_a_profile_needs_no_engine_beside_it(settings: Settings) -> None:
    workspace("polite", chats=1)
    JudgeProfile.objects.create(name="careful", config=spec_to_json(JudgeSpec("reflection")))
    with answering(settings, always(True)):
        assert evaluate("--set", "calibration", "--profile", "careful").code == 0
    assert the_run().judge.engine == "reflection"
    assert str(the_run().judge.profile) == "careful"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--profile", "nobody"), "--profile: there is no judge profile 'nobody'"),
        (("--profile", "broken"), "--profile: engine"),
        (("--engine", "direct", "--samples", "10"), "--samples: must be a whole number from 1 to 9"),
        (("--engine", "direct", "--window-rule", "any_fails"), "--window-tokens"),
        (("--engine", "direct", "--window-tokens", "2000000"), "--window-tokens"),
        (("--engine", "direct", "--budget", "0"), "--budget"),
        (("--engine", "direct", "--budget", "nan"), "--budget"),
        (("--engine", "direct", "--budget", "0.00001"), "--budget"),
        (("--engine", "direct", "--audit", "1.5"), "--audit"),
        (("--engine", "direct", "--audit", "nan"), "--audit"),
        (("--engine", "direct", "--ablation", "no_judge"), "--ablation"),
        (("--engine", "direct", "--knowledge", "all"), "--knowledge"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_option(
    settings: Settings, args: tuple[str, ...], words: str
) -> None:
    workspace("polite", chats=1)
    JudgeProfile.objects.create(name="broken", config={"engine": "oracle"})
    with answering(settings, always(True)) as stub:
        ended = evaluate("--set", "calibration", *args)
        assert stub.count == 0
    assert ended.code == 2
    assert words in ended.error
    assert not Run.objects.exists() and not Judge.objects.exists()


RESUMED = {
    "limit": "1",
    "replicate": "1",
    "audit": "0.5",
    "samples": "2",
    "window_tokens": "900",
    "engine": "direct",
    "split": "dev",
    "grouping": "rubric",
    "knowledge": "none",
    "role_in": "user",
    "layout": "auto",
    "ablation": "no_briefs",
    "window_rule": "any_fails",
}


@pytest.mark.parametrize("name", PLAN_OPTIONS)
def test_no_option_of_the_plan_goes_with_resume(settings: Settings, name: str) -> None:
    option = f"--{name.replace('_', '-')}"
    value = () if name in ("batch", "logprobs") else (RESUMED.get(name, "x"),)
    with answering(settings, always(True)):
        ended = evaluate("--resume", "1", option, *value)
    assert ended.code == 2
    assert f"{option} cannot be used with --resume" in ended.error


def test_a_run_keeps_its_terms(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)):
        assert evaluate(*DIRECT, "--audit", "0.25").code == 0
    run = the_run()
    assert (run.mode, run.budget_usd, run.options["audit"]) == ("live", None, 0.25)


def test_a_run_that_reaches_its_budget_pauses_with_exit_3_and_goes_on_with_more(
    settings: Settings, prices: str
) -> None:
    workspace("polite", chats=3)
    with answering(settings, always(True), prices=prices) as stub:
        ended = evaluate(*DIRECT, "--budget", "0.01")
        assert (ended.code, ended.answer["state"], stub.count) == (3, "paused", 0)
        assert "the budget of $0.01" in ended.error
        assert f"--resume {the_run().pk}" in ended.error
        more = evaluate("--resume", str(the_run().pk), "--budget", "1000")
        assert (more.code, more.answer["state"]) == (0, "done")
    assert the_run().budget_usd == Decimal(1000)


def test_a_budget_that_is_spent_already_is_refused(settings: Settings, prices: str) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True), prices=prices):
        assert evaluate(*DIRECT, "--budget", "1000").code == 0
        Run.objects.update(state="paused")
        ended = evaluate("--resume", str(the_run().pk), "--budget", "0.0001")
    assert ended.code == 2
    assert "has already spent" in ended.error


def test_a_budget_without_prices_is_refused_before_anything_is_sent(settings: Settings) -> None:
    workspace("polite", chats=1)
    for mode in ((), ("--batch",)):
        with answering(settings, always(True)) as stub:
            ended = evaluate(*DIRECT, "--budget", "5", *mode)
            assert stub.count == 0
        assert ended.code == 2
        assert "a budget needs a price" in ended.error
        assert not Run.objects.exists()
