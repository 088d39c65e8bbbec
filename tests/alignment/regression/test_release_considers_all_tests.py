"""A release considers the newest test of its candidate on every set and split, under the policy in force."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.core import GatePolicy
from alignment.regression.queries.candidate_tests import candidate_tests, override_reasons
from alignment.regression.services.policies import policy_ensure, policy_in_force, policy_revise
from alignment.regression.services.releases import ReleaseRefused, may_release, release
from alignment.regression.services.tests import (
    RegressionChoice,
    RegressionRefused,
    judge_test_start,
    prompt_test_start,
)
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.profiles import profile_save
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.prompts.services.restores import prompt_restore
from labeling.models.chats import ChatSet
from labeling.models.people import AuditEvent, User
from tests.factories.gate_reference import champion_of, judging, version_of
from tests.factories.page_text import words_of
from tests.factories.runs import answering
from tests.stub_endpoint import StubEndpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stub(settings: Settings) -> Iterator[StubEndpoint]:
    with answering(settings, judging()) as endpoint:
        yield endpoint


def choice(golden: ChatSet, split: str = "dev", **fields: Any) -> RegressionChoice:
    return RegressionChoice(
        golden, split, JudgeSpec("direct"), policy_in_force(), **{"on_worker": False, **fields}
    )


def candidate() -> PromptVersion:
    return PromptVersion.objects.get(number=2)


def ended(test: RegressionTest, result: str, *, policy: Policy | None = None) -> RegressionTest:
    """The test as if the gate had decided it."""
    body: dict[str, Any] = {
        "gate": result,
        "reasons": [],
        "more_labels": None,
        "criteria": [],
        "pooled": None,
    }
    RegressionTest.objects.filter(pk=test.pk).update(
        state="done",
        result=result,
        body=body,
        finished_at=timezone.now(),
        policy=policy or test.policy,
    )
    return RegressionTest.objects.get(pk=test.pk)


def prompt_test(golden: ChatSet, result: str, *, version: PromptVersion | None = None) -> RegressionTest:
    """A decided test of version 2 alone on dev."""
    return ended(prompt_test_start(candidate=version or candidate(), choice=choice(golden)), result)


def on(split: str, test: RegressionTest, result: str, *, policy: Policy | None = None) -> RegressionTest:
    """A newer test of the same candidate and runs on another split."""
    again = RegressionTest.objects.create(
        kind=test.kind,
        chat_set=test.chat_set,
        split=split,
        policy=policy or test.policy,
        candidate=test.candidate,
        candidate_profile=test.candidate_profile,
        profile=test.profile,
        baseline_run=test.baseline_run,
        candidate_run=test.candidate_run,
    )
    return ended(again, result)


def judge_test(golden: ChatSet, result: str, *prompts: PromptVersion) -> RegressionTest:
    """A decided test of a whole judge with these prompts."""
    saved = JudgeProfile.objects.filter(name="sampled").first()
    profile = saved or profile_save(name="sampled", choice=JudgeSpec("direct", samples=3))
    test = judge_test_start(
        judge=JudgeSpec("direct", samples=3),
        choice=choice(golden, candidate_profile=profile),
        prompts=prompts,
    )
    return ended(test, result)


def test_a_version_that_failed_the_holdout_needs_an_override_from_its_passed_dev_test(
    golden: ChatSet, lead_user: User
) -> None:
    dev = prompt_test(golden, "pass")
    holdout = on("holdout", dev, "fail")
    why = f"regression test {holdout.pk} on golden, holdout, failed"
    with pytest.raises(ReleaseRefused, match=f"{why}: release it with an override"):
        release(test=dev, by=lead_user)
    assert champion_of().number == 1
    released = release(test=dev, by=lead_user, override=True, reason="The law says so")
    assert (released.overridden, released.released_by) == (True, lead_user)
    assert AuditEvent.objects.get(verb="gate overridden").detail["against"] == [why]


def test_it_does_not_matter_from_which_test_the_release_starts(golden: ChatSet) -> None:
    dev = prompt_test(golden, "pass")
    holdout = on("holdout", dev, "fail")
    assert override_reasons(holdout) == (f"regression test {holdout.pk} did not pass",)
    assert len(override_reasons(dev)) == 1


def test_a_newer_pass_on_the_same_chats_replaces_a_fail(golden: ChatSet, lead_user: User) -> None:
    dev = prompt_test(golden, "pass")
    on("holdout", dev, "fail")
    on("holdout", dev, "pass")
    assert override_reasons(dev) == ()
    assert not release(test=dev, by=lead_user).overridden


def test_an_inconclusive_test_does_not_replace_a_fail(golden: ChatSet) -> None:
    dev = prompt_test(golden, "pass")
    failed, newer = on("holdout", dev, "fail"), on("holdout", dev, "inconclusive")
    assert override_reasons(dev) == (f"regression test {failed.pk} on golden, holdout, failed",)
    assert [row.test.pk for row in candidate_tests(dev) if row.counts] == [newer.pk, failed.pk, dev.pk]


def test_a_pass_under_a_laxer_policy_file_does_not_replace_a_fail(golden: ChatSet) -> None:
    dev = prompt_test(golden, "pass")
    failed = on("holdout", dev, "fail")
    on("holdout", dev, "pass", policy=policy_ensure(GatePolicy(name="easy", floor=0.1)))
    assert override_reasons(dev) == (f"regression test {failed.pk} on golden, holdout, failed",)


def test_a_pass_replaces_a_fail_only_while_its_policy_is_in_force(golden: ChatSet, lead_user: User) -> None:
    dev = prompt_test(golden, "pass")
    failed, lax = on("holdout", dev, "fail"), on("holdout", dev, "pass")
    strict = policy_revise(changes={"floor": 0.8}, reason="We know more", by=lead_user)
    again = on("dev", dev, "pass", policy=strict)
    why = f"regression test {failed.pk} on golden, holdout, failed under start values, version 2"
    assert override_reasons(again) == (why,)
    assert lax.pk in {row.test.pk for row in candidate_tests(again) if row.counts}
    on("holdout", dev, "pass", policy=strict)
    assert override_reasons(again) == ()


def test_a_pass_on_another_split_or_set_replaces_no_fail(golden: ChatSet) -> None:
    dev = prompt_test(golden, "pass")
    failed = on("holdout", dev, "fail")
    on("", dev, "pass")
    on("dev", dev, "pass")
    assert override_reasons(dev) == (f"regression test {failed.pk} on golden, holdout, failed",)


def test_of_several_fails_on_the_same_chats_the_newest_is_named(golden: ChatSet) -> None:
    dev = prompt_test(golden, "pass")
    on("holdout", dev, "fail")
    newest = on("holdout", dev, "fail")
    on("holdout", dev, "inconclusive")
    assert override_reasons(dev) == (f"regression test {newest.pk} on golden, holdout, failed",)


def test_an_older_pass_does_not_replace_a_newer_fail(golden: ChatSet) -> None:
    dev = prompt_test(golden, "pass")
    on("holdout", dev, "pass")
    on("holdout", dev, "fail")
    assert len(override_reasons(dev)) == 1


def test_an_inconclusive_test_elsewhere_asks_for_nothing_but_a_newer_one_on_the_same_chats_does(
    golden: ChatSet,
) -> None:
    dev = prompt_test(golden, "pass")
    on("holdout", dev, "inconclusive")
    assert override_reasons(dev) == ()
    newer = on("dev", dev, "inconclusive")
    assert override_reasons(dev) == (f"regression test {newer.pk} on golden, dev, is newer and inconclusive",)


def test_cancelled_and_running_tests_decide_nothing(golden: ChatSet) -> None:
    dev = prompt_test(golden, "pass")
    running = on("holdout", dev, "fail")
    RegressionTest.objects.filter(pk=running.pk).update(state="running", result="")
    cancelled = on("", dev, "fail")
    RegressionTest.objects.filter(pk=cancelled.pk).update(state="cancelled", result="")
    assert override_reasons(dev) == ()
    assert [row.test.pk for row in candidate_tests(dev)] == [running.pk, dev.pk]


def test_a_pass_under_another_policy_is_none_and_a_fail_under_it_stands(
    golden: ChatSet, lead_user: User
) -> None:
    dev = prompt_test(golden, "pass")
    strict = policy_revise(changes={"floor": 0.8}, reason="We know more", by=lead_user)
    assert override_reasons(dev) == (
        f"regression test {dev.pk} passed under start values, version 2, which is not in force",
    )
    again = on("dev", dev, "pass", policy=strict)
    assert override_reasons(again) == ()
    failed = on("holdout", dev, "fail")
    (why,) = override_reasons(again)
    assert why == f"regression test {failed.pk} on golden, holdout, failed under start values, version 2"


def test_a_pass_under_a_policy_file_needs_an_override(golden: ChatSet) -> None:
    dev = prompt_test(golden, "pass")
    easy = on("dev", dev, "pass", policy=policy_ensure(GatePolicy(name="easy", floor=0.1)))
    assert "easy, version 2, which is not in force" in override_reasons(easy)[0]


def test_the_fail_of_a_text_stands_under_another_version_number(golden: ChatSet, lead_user: User) -> None:
    failed = on("holdout", prompt_test(golden, "pass"), "fail")
    version_of(mark="Look three times.")
    restored = prompt_restore(version=candidate(), reason="Once more", by=lead_user)
    assert restored.number == 4
    dev = prompt_test(golden, "pass", version=restored)
    assert override_reasons(dev) == (f"regression test {failed.pk} on golden, holdout, failed",)


def test_a_failed_judge_stands_against_its_prompt_until_the_prompt_alone_passes(golden: ChatSet) -> None:
    judge = judge_test(golden, "fail", candidate())
    alone = prompt_test(golden, "inconclusive")
    other = on("holdout", alone, "pass")
    assert override_reasons(other) == (f"regression test {judge.pk} on golden, dev, failed",)
    ended(alone, "pass")
    assert override_reasons(other) == ()
    RegressionTest.objects.filter(pk=judge.pk).update(split="")
    assert override_reasons(other) == (f"regression test {judge.pk} on golden, all splits, failed",)


def test_the_fail_of_a_prompt_stands_against_a_judge_that_passed_with_it(golden: ChatSet) -> None:
    failed = prompt_test(golden, "fail")
    judge = judge_test(golden, "pass", candidate())
    why = f"regression test {failed.pk} on golden, dev, failed"
    assert override_reasons(judge) == (why,)
    assert [row.counts for row in candidate_tests(failed)] == [True, True]
    other = judge_test(golden, "pass")
    assert override_reasons(other) == ()  # a judge without that prompt


def test_authors_release_nothing_that_needs_an_override(
    golden: ChatSet, lead_user: User, author_user: User, author: Client
) -> None:
    policy_revise(changes={"authors_release": True}, reason="Small team", by=lead_user)
    dev = prompt_test(golden, "pass")
    assert may_release(test=dev, user=author_user)
    failed = on("holdout", dev, "fail")
    assert not may_release(test=dev, user=author_user)
    shown = words_of(author.get(reverse("alignment:regression_detail", args=[dev.pk])))
    assert f"regression test {failed.pk} on golden, holdout, failed" in shown
    assert author.post(reverse("alignment:regression_release", args=[dev.pk])).status_code == 404


def test_the_page_lists_every_test_of_the_version_and_asks_for_the_override(
    golden: ChatSet, lead: Client
) -> None:
    dev = prompt_test(golden, "pass")
    older, failed = on("holdout", dev, "pass"), on("holdout", dev, "fail")
    url = reverse("alignment:regression_detail", args=[dev.pk])
    shown = words_of(lead.get(url))
    assert "All tests of version 2" in shown
    assert f"{failed.pk} golden holdout Fail start values version 2" in shown
    assert f"{older.pk} golden holdout Pass replaced by a newer test" in shown
    assert "A release needs an override" in shown
    assert "Release v2" not in shown
    to = reverse("alignment:regression_release", args=[dev.pk])
    assert "Not released: Enter a reason." in words_of(lead.post(to, follow=True))
    done = words_of(lead.post(to, {"reason": "The law says so"}, follow=True))
    assert "Released by override" in done
    assert "This test passed, but its policy or another test" in done
    assert champion_of().number == 2


def test_the_api_lists_every_test_and_why_an_override_is_needed(golden: ChatSet, lead: Client) -> None:
    dev = prompt_test(golden, "pass")
    failed = on("holdout", dev, "fail")
    body = lead.get(reverse("api_regression", args=[dev.pk])).json()
    assert [(row["test"], row["split"], row["gate"], row["counts"]) for row in body["tests"]] == [
        (failed.pk, "holdout", "fail", True),
        (dev.pk, "dev", "pass", True),
    ]
    assert body["tests"][0]["policy"] == "start values, version 2"
    assert body["needs_override"] == [f"regression test {failed.pk} on golden, holdout, failed"]
    to = reverse("api_regression_release", args=[dev.pk])
    assert lead.post(to, {}, content_type="application/json").status_code == 409
    given = {"override": True, "reason": "The law says so"}
    assert lead.post(to, given, content_type="application/json").json()["released"]["overridden"]


def test_the_criterion_offers_no_release_of_what_failed_elsewhere(golden: ChatSet, lead: Client) -> None:
    dev = prompt_test(golden, "pass")
    url = reverse("alignment:criterion_detail", args=["polite"])
    assert "and can be released" in words_of(lead.get(url))
    on("holdout", dev, "fail")
    on("dev", dev, "pass")
    assert "and can be released" not in words_of(lead.get(url))


def test_a_version_whose_fail_stands_is_rejected_on_its_criterion(golden: ChatSet, lead: Client) -> None:
    dev = prompt_test(golden, "pass")
    on("holdout", dev, "fail")
    on("holdout", dev, "inconclusive")
    on("dev", dev, "pass")
    shown = words_of(lead.get(reverse("alignment:criterion_detail", args=["polite"])))
    assert "and can be released" not in shown


def test_the_criterion_asks_for_a_test_under_the_policy_in_force(
    golden: ChatSet, lead: Client, lead_user: User
) -> None:
    prompt_test(golden, "pass")
    policy_revise(changes={"floor": 0.8}, reason="We know more", by=lead_user)
    shown = words_of(lead.get(reverse("alignment:criterion_detail", args=["polite"])))
    assert "Its last test has a policy that is no longer in force." in shown


def test_a_prompt_with_errors_is_neither_tested_nor_released(golden: ChatSet, lead_user: User) -> None:
    dev = prompt_test(golden, "pass")
    PromptVersion.objects.filter(pk=candidate().pk).update(text="# Objektive\nIs polite so?\n")
    with pytest.raises(ReleaseRefused, match="version 2 of Polite has errors: # Objective: is missing"):
        release(test=dev, by=lead_user, override=True, reason="The law says so")
    broken = prompt_version_add(criterion=candidate().criterion, text="# Objektive\nIs polite so?\n")
    with pytest.raises(RegressionRefused, match="Correct them in a new version"):
        prompt_test_start(candidate=broken, choice=choice(golden))


def test_the_number_of_queries_does_not_grow_with_the_tests(
    golden: ChatSet, django_assert_max_num_queries: Any
) -> None:
    dev = prompt_test(golden, "pass")
    for _ in range(10):
        on("holdout", dev, "pass")
    test = RegressionTest.objects.select_related("candidate__criterion", "policy", "chat_set").get(pk=dev.pk)
    with django_assert_max_num_queries(2):
        assert override_reasons(test) == ()
