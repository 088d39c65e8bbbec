"""Releases what a regression test has tested: prompts become champions, a recipe the default."""

from django.db import transaction
from django.utils import timezone

from alignment.models.regressions import RegressionTest
from alignment.regression.queries.changed_prompts import changed_by_judges
from alignment.regression.queries.policy_page import policy_chosen
from alignment.regression.queries.tests import gate_policy
from common.problems import InputProblem
from evaluation.judges.queries.profiles import default_profile
from evaluation.judges.services.profiles import profile_make_default, profiles_lock
from evaluation.models.judges import JudgeProfile, JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.versions import prompt_promote
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit


class ReleaseRefused(InputProblem):
    """A candidate that cannot be released; the message says why."""


@transaction.atomic
def release(*, test: RegressionTest, by: User, reason: str = "", override: bool = False) -> RegressionTest:
    """Put the candidate in the champion's place, for all runs to come; running and old ones keep theirs.

    What the gate has not passed is released only with `override` and a reason, which stay visible for ever.
    Raises ReleaseRefused: a test that is not over, released already, or run against what is champion no
    more.
    """
    test = RegressionTest.objects.select_for_update(of=("self",)).get(pk=test.pk)
    # Two releases for one criterion come one after the other: the second sees the first one's champion.
    tested = JudgePrompt.objects.filter(judge=test.candidate_run.judge_id).values("criterion")
    list(Criterion.objects.select_for_update(no_key=True).filter(pk__in=tested).order_by("pk"))
    if test.candidate_profile_id is not None:
        profiles_lock()  # in the same way for the default recipe
    _check(test, reason=reason, override=override)
    passed = test.result == RegressionTest.Result.PASS
    why = reason.strip() or f"Regression test {test.pk} passed"
    for version in _new_champions(test):
        prompt_promote(version=version, reason=why, by=by, overridden=not passed)
    if (profile := _new_profile(test)) is not None:
        profile_make_default(profile=profile)
    test.released_by, test.released_at = by, timezone.now()
    test.release_reason, test.overridden = why, not passed
    test.save(update_fields=["released_by", "released_at", "release_reason", "overridden"])
    audit(actor=by, verb="release", obj=test, overridden=test.overridden, reason=why)
    return test


def may_release(*, test: RegressionTest, user: User) -> bool:
    """Leads may; authors where the policy in force says so, and only what has passed under it."""
    if user.has_perm("labeling.release_prompts"):
        return True
    if test.result != RegressionTest.Result.PASS or not user.has_perm("labeling.edit_prompts"):
        return False
    # The start values let no author release, so as long as nobody has made a policy the answer is no.
    in_force = policy_chosen()
    return in_force == test.policy and gate_policy(test.policy).authors_release


def changed_prompts(test: RegressionTest) -> list[PromptVersion]:
    """The candidate's prompt versions that its baseline does not use."""
    return [test.candidate] if test.candidate is not None else changed_by_judges([test])[test.pk]


def release_problem(test: RegressionTest) -> str:
    """What stands against releasing the candidate now, whoever asks; '' where nothing does.

    A test says nothing against a champion or a default recipe that it was not run against, nor of a profile
    changed since.
    """
    if test.state != RegressionTest.State.DONE:
        return f"regression test {test.pk} is not over"
    if test.released_at is not None:
        return f"regression test {test.pk} was released already"
    profile = _new_profile(test)
    if not _new_champions(test) and (profile is None or profile.is_default):
        return "there is nothing to release: new runs ask what was tested already"
    return _other_recipe(test, profile) or _other_champion(test)


def _check(test: RegressionTest, *, reason: str, override: bool) -> None:
    if problem := release_problem(test):
        raise ReleaseRefused(problem)
    if test.result != RegressionTest.Result.PASS and not override:
        raise ReleaseRefused(f"regression test {test.pk} did not pass: releasing it has to be overridden")
    if override and not reason.strip():
        raise ReleaseRefused("an override needs a reason")


def _new_champions(test: RegressionTest) -> list[PromptVersion]:
    """The changed prompts that today's champions do not say, under whatever number."""
    current = _champions_now(test)
    versions = changed_prompts(test)
    return [row for row in versions if current.get(row.criterion_id, row).content_hash != row.content_hash]


def _champions_now(test: RegressionTest) -> dict[int, PromptVersion]:
    """Today's champion of each criterion that was tested, by criterion id."""
    tested = JudgePrompt.objects.filter(judge=test.candidate_run.judge_id).select_related("criterion")
    return champions(criteria=[row.criterion for row in tested])


def _other_champion(test: RegressionTest) -> str:
    """A champion that neither side of the test has asked."""
    judges = test.baseline_run.judge_id, test.candidate_run.judge_id
    rows = JudgePrompt.objects.filter(judge__in=judges)
    # By content: a version taken up again asks what the older one asked.
    asked = set(rows.values_list("criterion_id", "prompt_version__content_hash"))
    for version in _champions_now(test).values():
        if (version.criterion_id, version.content_hash) not in asked:
            return f"the champion of {version.criterion.key} is version {version.number} by now: test again"
    return ""


def _other_recipe(test: RegressionTest, profile: JudgeProfile | None) -> str:
    """A recipe that was changed since the test, or a default that neither side of it has asked with."""
    if profile is None:
        return ""
    for row in (test.profile, profile):
        if row is not None and row.updated_at > test.created_at:
            return f"the profile {row.name} was changed after it was tested: test again"
    default = default_profile()
    if default is not None and default.pk not in (test.profile_id, profile.pk):
        return f"the default recipe is {default.name} by now: test again"
    return ""


def _new_profile(test: RegressionTest) -> JudgeProfile | None:
    """The recipe that would become the default."""
    return None if test.candidate_profile_id == test.profile_id else test.candidate_profile
