"""Releases what a regression test has tested: prompts become champions, a recipe the default."""

from django.db import transaction
from django.utils import timezone

from alignment.models.regressions import RegressionTest
from alignment.selectors.regressions import gate_policy
from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.selectors.prompts import champions
from evaluation.services.profiles import profile_make_default
from evaluation.services.prompts import prompt_promote
from labeling.core.problems import InputProblem
from labeling.models.people import User
from labeling.services.audit import audit


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
    _check(test, reason=reason, override=override)
    versions = changed_prompts(test)
    _check_champions(test)
    passed = test.result == RegressionTest.Result.PASS
    why = reason.strip() or f"Regression test {test.pk} passed"
    for version in versions:
        prompt_promote(version=version, reason=why, by=by, overridden=not passed)
    if test.candidate_profile is not None and test.candidate_profile_id != test.profile_id:
        profile_make_default(profile=test.candidate_profile)
    test.released_by, test.released_at = by, timezone.now()
    test.release_reason, test.overridden = why, not passed
    test.save(update_fields=["released_by", "released_at", "release_reason", "overridden"])
    audit(actor=by, verb="release", obj=test, overridden=test.overridden, reason=why)
    return test


def may_release(*, test: RegressionTest, user: User) -> bool:
    """Leads may; authors where the policy says so, and only what has passed."""
    if user.has_perm("labeling.release_prompts"):
        return True
    passed = test.result == RegressionTest.Result.PASS
    return passed and user.has_perm("labeling.edit_prompts") and gate_policy(test.policy).authors_release


def changed_prompts(test: RegressionTest) -> list[PromptVersion]:
    """The candidate's prompt versions that its baseline does not use."""
    if test.candidate is not None:
        # NB: not the judge's own row, which names an earlier version where the candidate restores one.
        return [test.candidate]
    baseline = JudgePrompt.objects.filter(judge=test.baseline_run.judge_id)
    used = baseline.values("prompt_version__content_hash")
    rows = JudgePrompt.objects.filter(judge=test.candidate_run.judge_id)
    rows = rows.exclude(prompt_version__content_hash__in=used)
    return [row.prompt_version for row in rows.select_related("prompt_version__criterion")]


def _check(test: RegressionTest, *, reason: str, override: bool) -> None:
    if test.state != RegressionTest.State.DONE:
        raise ReleaseRefused(f"regression test {test.pk} is not over")
    if test.released_at is not None:
        raise ReleaseRefused(f"regression test {test.pk} was released already")
    if test.result != RegressionTest.Result.PASS and not override:
        raise ReleaseRefused(f"regression test {test.pk} did not pass: releasing it has to be overridden")
    if override and not reason.strip():
        raise ReleaseRefused("an override needs a reason")


def _check_champions(test: RegressionTest) -> None:
    """A test says nothing against a champion that it was not run against."""
    baseline = JudgePrompt.objects.filter(judge=test.baseline_run.judge_id)
    rows = baseline.select_related("criterion", "prompt_version")
    tested = {row.criterion_id: row.prompt_version.content_hash for row in rows}
    for version in champions(criteria=[row.criterion for row in rows]).values():
        if tested[version.criterion_id] != version.content_hash:
            raise ReleaseRefused(
                f"the champion of {version.criterion.key} is version {version.number} by now: test again"
            )
