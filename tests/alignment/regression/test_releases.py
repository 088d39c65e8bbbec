"""Regression tests through the services: what may be tested, and what becomes of it."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pytest_django import Settings

from alignment.models.regressions import RegressionTest
from alignment.regression.core import GatePolicy
from alignment.regression.services.control import regression_pause, regression_resume
from alignment.regression.services.policies import policy_ensure, policy_in_force, policy_revise
from alignment.regression.services.releases import ReleaseRefused, may_release, release
from alignment.regression.services.tests import (
    RegressionChoice,
    RegressionRefused,
    judge_test_start,
    prompt_test_start,
    regression_cancel,
)
from alignment.regression.worker import regression_advance, regressions_sweep, runs_of
from common.problems import FieldProblem, InputProblem
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.profiles import default_profile
from evaluation.judges.services.profiles import profile_make_default, profile_save, profiles_ensure
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.models.runs import Run
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.runs.services.control import run_cancel
from evaluation.runs.worker.execute import run_execute
from labeling.models.chats import ChatSet
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Criterion
from tests.factories.runs import MODEL, always, answering
from tests.files import chat, criterion, label, refused, rubric, run, write_json, write_jsonl

pytestmark = pytest.mark.django_db(transaction=True)

CASES = [f"c-{n:03}" for n in range(110)]


def build_golden() -> ChatSet:
    """110 labelled chats and two criteria, each asked by itself."""
    criteria = [criterion("polite", tier="context"), criterion("exact", tier="context")]
    chats = [chat(case, f"This is case {case}.", "On its way.") for case in CASES]
    mine = [label(case, key, value=True) for case in CASES for key in ("polite", "exact")]
    with TemporaryDirectory() as name:
        folder = Path(name)
        run("import_rubric", write_json(folder / "rubric.json", rubric(*criteria)))
        run("import_chats", write_jsonl(folder / "chats.jsonl", *chats), "--set", "golden")
        run("import_labels", write_jsonl(folder / "labels.jsonl", *mine))
    return ChatSet.objects.select_related("rubric").get(name="golden")


@pytest.fixture
def golden(golden_once: Callable[[], ChatSet], transactional_db: None) -> ChatSet:
    return golden_once()


def choice(golden: ChatSet, **changes: object) -> RegressionChoice:
    usual = RegressionChoice(golden, "dev", JudgeSpec("direct"), policy_in_force(), on_worker=False)
    return replace(usual, **changes)  # type: ignore[arg-type]


def version_of(key: str = "polite", text: str = "# Objective\nIs polite so?") -> PromptVersion:
    return prompt_version_add(criterion=Criterion.objects.get(key=key), text=text)


def recipe_choice(golden: ChatSet, profile: JudgeProfile, recipe: JudgeSpec) -> RegressionChoice:
    """A profile's recipe against another one, which gets a profile of its own."""
    other = profile_save(name=f"{recipe.samples} samples", choice=recipe)
    return choice(golden, profile=profile, candidate_profile=other)


def champion_of(key: str = "polite") -> PromptVersion:
    row = Criterion.objects.get(key=key)
    return champions(criteria=[row])[row.pk]


def carried_out(test: RegressionTest) -> RegressionTest:
    for one in runs_of(test):
        run_execute(one, on_unit=lambda failed: None)
    regressions_sweep()
    test.refresh_from_db()
    return test


def passed(golden: ChatSet, settings: Settings) -> RegressionTest:
    """A test of a new version that nothing speaks against."""
    with answering(settings, always(True)):
        test = carried_out(prompt_test_start(candidate=version_of(), choice=choice(golden)))
    assert (test.state, test.result) == ("done", "pass")
    return test


def test_only_the_criteria_of_the_changed_call_are_asked(golden: ChatSet, settings: Settings) -> None:
    with answering(settings, always(True)) as stub:
        test = carried_out(prompt_test_start(candidate=version_of(), choice=choice(golden)))
    assert stub.count == 2 * len(CASES)
    assert [found["key"] for found in (test.body or {})["criteria"]] == ["polite"]


def test_the_champion_itself_is_not_tested(golden: ChatSet) -> None:
    run("evaluate", "--set", "golden", "--engine", "direct", "--dry-run")
    version_of()
    with pytest.raises(RegressionRefused, match="is already the champion"):
        prompt_test_start(candidate=champion_of(), choice=choice(golden))
    assert not Run.objects.exists()


def test_a_version_that_passed_is_released_and_asked_from_then_on(
    golden: ChatSet, settings: Settings, lead_user: User
) -> None:
    test = passed(golden, settings)
    before = champion_of()
    released = release(test=test, by=lead_user)
    assert (champion_of(), released.overridden, released.released_by) == (test.candidate, False, lead_user)
    assert test.baseline_run.judge.prompts.get().prompt_version == before
    promotion = Promotion.objects.latest("id")
    assert (promotion.overridden, promotion.reason) == (False, f"Regression test {test.pk} passed")
    assert AuditEvent.objects.filter(verb="release made", object_id=test.pk).exists()


def test_what_did_not_pass_needs_an_override_with_a_reason(
    golden: ChatSet, settings: Settings, lead_user: User
) -> None:
    with answering(settings, always(True)):
        strict = policy_ensure(GatePolicy(name="strict", single_minimum=200))
        test = carried_out(prompt_test_start(candidate=version_of(), choice=choice(golden, policy=strict)))
    assert test.result == "inconclusive"
    with pytest.raises(ReleaseRefused, match="did not pass"):
        release(test=test, by=lead_user, reason="I like it")
    with pytest.raises(ReleaseRefused, match="enter a reason for the override"):
        release(test=test, by=lead_user, override=True)
    released = release(test=test, by=lead_user, override=True, reason="Labels come next week")
    assert (released.overridden, released.release_reason) == (True, "Labels come next week")
    assert Promotion.objects.latest("id").overridden


@pytest.mark.heavy
def test_a_test_against_an_older_champion_releases_nothing(
    golden: ChatSet, settings: Settings, lead_user: User
) -> None:
    test = passed(golden, settings)
    run_before = champion_of()
    second = version_of(text="# Objective\nIs polite so? Really?")
    with answering(settings, always(True)):
        other = carried_out(prompt_test_start(candidate=second, choice=choice(golden)))
    release(test=other, by=lead_user)
    with pytest.raises(ReleaseRefused, match=f"is now version {second.number}: test again"):
        release(test=test, by=lead_user)
    assert run_before != champion_of() == second


def test_nothing_is_released_twice(golden: ChatSet, settings: Settings, lead_user: User) -> None:
    test = passed(golden, settings)
    release(test=test, by=lead_user)
    with pytest.raises(ReleaseRefused, match="is already released"):
        release(test=test, by=lead_user)


def test_authors_release_where_the_policy_says_so_and_only_what_passed(
    golden: ChatSet, settings: Settings, lead_user: User, author_user: User, rater_user: User
) -> None:
    test = passed(golden, settings)
    assert [may_release(test=test, user=user) for user in (lead_user, author_user, rater_user)] == [
        True,
        False,
        False,
    ]
    test.policy = policy_revise(changes={"authors_release": True}, reason="Small team", by=lead_user)
    assert may_release(test=test, user=author_user)
    test.result = RegressionTest.Result.FAIL
    assert not may_release(test=test, user=author_user)


@pytest.mark.parametrize("changes", [{"authors_release": False}, {"floor": 0.9}])
def test_authors_release_under_the_policy_in_force_alone(
    golden: ChatSet, settings: Settings, lead_user: User, author_user: User, changes: dict[str, Any]
) -> None:
    test = passed(golden, settings)
    test.policy = policy_revise(changes={"authors_release": True}, reason="Small team", by=lead_user)
    policy_revise(changes=changes, reason="We know more", by=lead_user)
    assert not may_release(test=test, user=author_user)
    assert may_release(test=test, user=lead_user)


@pytest.mark.heavy
def test_another_recipe_is_tested_on_every_criterion(golden: ChatSet, settings: Settings) -> None:
    with answering(settings, always(True)):
        test = judge_test_start(judge=JudgeSpec("reflection"), choice=choice(golden))
        assert carried_out(test).result == "pass"
    assert [found["key"] for found in (test.body or {})["criteria"]] == ["polite", "exact"]
    with pytest.raises(RegressionRefused, match="are the same judge"):
        judge_test_start(judge=JudgeSpec("direct"), choice=choice(golden))


@pytest.mark.heavy
def test_a_recipe_that_was_tested_against_an_older_default_replaces_no_newer_one(
    golden: ChatSet, settings: Settings, lead_user: User
) -> None:
    profiles_ensure()
    first = default_profile()
    assert first is not None
    recipes = [JudgeSpec("direct", samples=samples) for samples in (2, 3)]
    with answering(settings, always(True)):
        tests = [
            carried_out(judge_test_start(judge=recipe, choice=recipe_choice(golden, first, recipe)))
            for recipe in recipes
        ]
    release(test=tests[0], by=lead_user)
    with pytest.raises(ReleaseRefused, match="the default profile is now 2 samples: test again"):
        release(test=tests[1], by=lead_user)
    assert default_profile() == tests[0].candidate_profile
    JudgeProfile.objects.filter(is_default=True).update(is_default=False)
    profile_make_default(profile=first)
    profile_save(name="slower", choice=JudgeSpec("reflection"), profile=first)
    with pytest.raises(ReleaseRefused, match="the profile slower has changed since the test"):
        release(test=tests[1], by=lead_user)


@pytest.mark.heavy
def test_a_finished_run_is_a_baseline_on_its_own_chats_only(golden: ChatSet, settings: Settings) -> None:
    with answering(settings, always(True)):
        whole = run("evaluate", "--set", "golden", "--engine", "direct").document["run"]
        part = run("evaluate", "--set", "golden", "--engine", "direct", "--limit", "5").document["run"]
        judge = JudgeSpec("direct", samples=3)
        test = judge_test_start(judge=judge, choice=choice(golden), baseline=Run.objects.get(pk=whole))
        assert carried_out(test).result == "pass"
    with pytest.raises(RegressionRefused, match="has other chats"):
        judge_test_start(judge=judge, choice=choice(golden), baseline=Run.objects.get(pk=part))


def test_a_test_that_is_cancelled_ends_with_its_runs(golden: ChatSet, lead_user: User) -> None:
    run("evaluate", "--set", "golden", "--engine", "direct", "--dry-run")
    test = prompt_test_start(candidate=version_of(), choice=choice(golden, noise=True))
    regression_cancel(test=test, by=lead_user)
    test.refresh_from_db()
    assert test.state == "cancelled"
    assert {one.state for one in runs_of(test)} == {Run.State.CANCELLED}
    with pytest.raises(RegressionRefused, match="is over"):
        regression_cancel(test=test, by=lead_user)
    assert regression_advance(test.pk).state == "cancelled"


def test_a_run_that_is_cancelled_by_itself_ends_its_test_and_the_other_runs(
    golden: ChatSet, lead_user: User
) -> None:
    run("evaluate", "--set", "golden", "--engine", "direct", "--dry-run")
    test = prompt_test_start(candidate=version_of(), choice=choice(golden, noise=True))
    run_cancel(run=test.candidate_run, by=lead_user)
    regressions_sweep()
    test.refresh_from_db()
    gone = f"run {test.candidate_run_id} was cancelled by {lead_user.get_username()}"
    assert (test.state, test.reasons) == ("cancelled", [gone])
    assert test.finished_at is not None
    assert {one.state for one in runs_of(test)} == {Run.State.CANCELLED}
    assert runs_of(test)[0].error == f"cancelled with run {test.candidate_run_id} of the same test"
    assert refused("gate", test.pk) == f"regression test {test.pk} was cancelled: {gone}"


@pytest.mark.heavy
def test_a_second_run_that_no_price_caps_any_more_ends_the_test_with_one_message(
    golden: ChatSet, settings: Settings, tmp_path: Path
) -> None:
    prices = str(write_json(tmp_path / "prices.json", {MODEL: {"input": 1.0, "output": 10.0}}))
    with answering(settings, always(True), prices=prices) as stub:
        test = prompt_test_start(candidate=version_of(), choice=choice(golden, budget_usd=Decimal(5)))
        run_execute(test.baseline_run, on_unit=lambda failed: None)
        stub.answer = always(False)
        run_execute(test.candidate_run, on_unit=lambda failed: None)
        settings.LACE_PRICES = ""
        regressions_sweep()
    test.refresh_from_db()
    assert (test.state, test.confirm_run) == ("cancelled", None)
    assert test.reasons == [
        "the second run of the candidate cannot be planned: "
        f"a budget needs a price for '{MODEL}': the operator of this server can add it to the price file, "
        "a lead to an endpoint that is connected"
    ]


@pytest.mark.heavy
def test_a_baseline_run_is_not_cancelled_with_the_test(
    golden: ChatSet, settings: Settings, lead_user: User
) -> None:
    with answering(settings, always(True)):
        whole = run("evaluate", "--set", "golden", "--engine", "direct").document["run"]
    baseline = Run.objects.get(pk=whole)
    test = judge_test_start(judge=JudgeSpec("reflection"), choice=choice(golden), baseline=baseline)
    Run.objects.filter(pk=whole).update(state=Run.State.RUNNING)  # its failed units are asked again
    regression_pause(test=test, by=lead_user)
    regression_resume(test=test, by=lead_user)
    regression_cancel(test=test, by=lead_user)
    baseline.refresh_from_db()
    test.candidate_run.refresh_from_db()
    assert (baseline.state, test.candidate_run.state) == (Run.State.RUNNING, Run.State.CANCELLED)


def test_a_policy_keeps_its_limits_under_its_name_and_version(db: None, lead_user: User) -> None:
    first = policy_in_force()
    second = policy_revise(changes={"floor": 0.8}, reason="We know more", by=lead_user)
    assert (second.version, second.parameters["floor"], policy_in_force()) == (3, 0.8, second)
    first.refresh_from_db()
    assert first.parameters["floor"] == 0.7
    with pytest.raises(InputProblem, match="exists with other limits"):
        policy_ensure(GatePolicy(version=3))
    with pytest.raises(InputProblem, match="enter a reason for the change"):
        policy_revise(changes={"floor": 0.9}, reason=" ", by=lead_user)
    with pytest.raises(FieldProblem, match="floor: must be a number between"):
        policy_revise(changes={"floor": 9}, reason="More", by=lead_user)
