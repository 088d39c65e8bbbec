"""Release a tested candidate: its prompts become champions, its profile the default; or ask leads for it."""

from django.db import IntegrityError, transaction
from django.utils import timezone

from alignment.models.regressions import RegressionTest, ReleaseRequest
from alignment.models.requests import LONGEST
from alignment.regression.queries.candidate_tests import override_reasons
from alignment.regression.queries.policy_page import policy_revised
from alignment.regression.queries.prompt_errors import prompt_problem
from alignment.regression.queries.tests import changed_by_judges, gate_policy
from common.inbox.services import Kind, inbox_add
from common.problems import InputProblem
from evaluation.judges.queries.profiles import default_profile
from evaluation.judges.services.profiles import profile_make_default, profiles_lock
from evaluation.models.judges import JudgeProfile, JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.versions import prompt_promote
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import accounts_with
from labeling.people.services.audit import audit

Answer = ReleaseRequest.Answer


class ReleaseRefused(InputProblem):
    """The candidate cannot be released; the message has the reason."""


@transaction.atomic
def release(*, test: RegressionTest, by: User, reason: str = "", override: bool = False) -> RegressionTest:
    """Make the candidate the champion for new runs; existing runs keep their prompts.

    A candidate needs `override` and a reason, which stay visible, unless the test passed under the policy in
    force and no FAIL of the candidate stands on any set or split.
    Raises ReleaseRefused if the test is not over, already released, or outdated by another champion, or if a
    prompt has errors.
    """
    test = RegressionTest.objects.select_for_update(of=("self",)).get(pk=test.pk)
    # The lock serialises releases of one criterion: the second sees the first one's champion.
    tested = JudgePrompt.objects.filter(judge=test.candidate_run.judge_id).values("criterion")
    list(Criterion.objects.select_for_update(no_key=True).filter(pk__in=tested).order_by("pk"))
    if test.candidate_profile_id is not None:
        profiles_lock()  # likewise for the default profile
    if not may_release(test=test, user=by):  # the policy or another test may have changed since the page
        raise ReleaseRefused("you cannot release this candidate: ask a lead")
    against = _check(test, reason=reason, override=override)
    why = reason.strip() or f"Regression test {test.pk} passed"
    for version in _new_champions(test):
        prompt_promote(version=version, reason=why, by=by, overridden=bool(against))
    if (profile := _new_profile(test)) is not None:
        profile_make_default(profile=profile, by=by)
    test.released_by, test.released_at = by, timezone.now()
    test.release_reason, test.overridden = why, bool(against)
    test.save(update_fields=["released_by", "released_at", "release_reason", "overridden"])
    _requests_released(test, by=by)
    audit(
        actor=by,
        verb="gate overridden" if against else "release made",
        obj=test,
        overridden=test.overridden,
        reason=why,
        against=list(against),
    )
    return test


def may_release(*, test: RegressionTest, user: User) -> bool:
    """Tell whether the user may release: leads, and authors without an override if the policy allows it."""
    if user.has_perm("labeling.release_prompts"):
        return True
    if test.result != RegressionTest.Result.PASS or not user.has_perm("labeling.edit_prompts"):
        return False
    # The start values do not let authors release, so without a revision the answer is no.
    in_force = policy_revised()
    allowed = in_force == test.policy and gate_policy(test.policy).authors_release
    return allowed and not override_reasons(test)


def changed_prompts(test: RegressionTest) -> list[PromptVersion]:
    """Return the candidate's prompt versions that the baseline does not have."""
    return [test.candidate] if test.candidate is not None else changed_by_judges([test])[test.pk]


def release_problem(test: RegressionTest) -> str:
    """Return why the candidate cannot be released now, for any user; '' if it can.

    A test is outdated by another champion, another default profile, or a changed profile. No override
    releases a prompt with errors.
    """
    if test.state != RegressionTest.State.DONE:
        return f"regression test {test.pk} is not finished"
    if test.released_at is not None:
        return f"regression test {test.pk} is already released"
    profile, versions = _new_profile(test), _new_champions(test)
    if not versions and (profile is None or profile.is_default):
        return "nothing to release: new runs already use this candidate"
    return _other_recipe(test, profile) or _other_champion(test) or prompt_problem(versions)


def _check(test: RegressionTest, *, reason: str, override: bool) -> tuple[str, ...]:
    """Return what the release overrides; empty if it needs no override."""
    if problem := release_problem(test):
        raise ReleaseRefused(problem)
    against = override_reasons(test)
    if against and not override:
        raise ReleaseRefused(f"{'; '.join(against)}: release it with an override")
    if override and not reason.strip():
        raise ReleaseRefused("enter a reason for the override")
    return against


def _new_champions(test: RegressionTest) -> list[PromptVersion]:
    """Return the changed prompts whose text is not already a champion's."""
    current = _champions_now(test)
    versions = changed_prompts(test)
    return [row for row in versions if current.get(row.criterion_id, row).content_hash != row.content_hash]


def _champions_now(test: RegressionTest) -> dict[int, PromptVersion]:
    """Return the current champion of each tested criterion, by criterion id."""
    tested = JudgePrompt.objects.filter(judge=test.candidate_run.judge_id).select_related("criterion")
    return champions(criteria=[row.criterion for row in tested])


def _other_champion(test: RegressionTest) -> str:
    """Return a problem if a champion's text was not in the test."""
    judges = test.baseline_run.judge_id, test.candidate_run.judge_id
    rows = JudgePrompt.objects.filter(judge__in=judges)
    # By content: a restored version has the text of the older one.
    tested = set(rows.values_list("criterion_id", "prompt_version__content_hash"))
    for version in _champions_now(test).values():
        if (version.criterion_id, version.content_hash) not in tested:
            return f"the champion of {version.criterion.name} is now version {version.number}: test again"
    return ""


def _other_recipe(test: RegressionTest, profile: JudgeProfile | None) -> str:
    """Return a problem if a profile changed since the test, or another profile is the default."""
    if profile is None:
        return ""
    for row in (test.profile, profile):
        if row is not None and row.updated_at > test.created_at:
            return f"the profile {row.name} has changed since the test: test again"
    default = default_profile()
    if default is not None and default.pk not in (test.profile_id, profile.pk):
        return f"the default profile is now {default.name}: test again"
    return ""


def _new_profile(test: RegressionTest) -> JudgeProfile | None:
    """Return the profile that would become the default."""
    return None if test.candidate_profile_id == test.profile_id else test.candidate_profile


# ---------- requests ----------


@transaction.atomic
def release_ask(*, test: RegressionTest, note: str, by: User) -> ReleaseRequest:
    """Ask the leads to release a decided test's candidate. Raises InputProblem."""
    if problem := release_problem(test):
        raise InputProblem(problem)
    if len(note) > LONGEST:
        raise InputProblem(f"a note has at most {LONGEST:,} characters")
    try:
        with transaction.atomic():
            row = ReleaseRequest.objects.create(regression=test, note=note.strip(), by=by)
    except IntegrityError as error:
        raise InputProblem("the release was asked for already") from error
    audit(actor=by, verb="release asked", obj=test, note=row.note)
    leads = accounts_with("release_prompts")
    inbox_add(users=leads, kind=Kind.RELEASE, subject=f"release:{row.pk}", by=by)
    return row


@transaction.atomic
def release_answer(*, request: ReleaseRequest, answer: str, reason: str, by: User) -> ReleaseRequest:
    """Refuse the release or ask for more labels, with a reason, and tell who asked. Raises InputProblem."""
    row = ReleaseRequest.objects.select_for_update(of=("self",)).select_related("by").get(pk=request.pk)
    if row.answer != Answer.OPEN:
        raise InputProblem(f"the request was answered already: {row.get_answer_display().lower()}")
    if answer not in (Answer.REFUSED, Answer.MORE_LABELS):
        raise InputProblem("choose an answer")
    if not reason.strip() or len(reason) > LONGEST:
        raise InputProblem(f"enter a reason of at most {LONGEST:,} characters")
    _answered(row, answer, reason=reason.strip(), by=by)
    audit(actor=by, verb="release refused", obj=row.regression, answer=answer, reason=row.reason)
    return row


def _requests_released(test: RegressionTest, *, by: User) -> None:
    """Answer the open requests of a test that was released, and tell who asked."""
    rows = ReleaseRequest.objects.filter(regression=test, answer=Answer.OPEN).select_related("by")
    for row in rows.select_for_update(of=("self",)):
        _answered(row, Answer.RELEASED, reason="", by=by)


def _answered(row: ReleaseRequest, answer: str, *, reason: str, by: User) -> None:
    row.store_answer(answer, reason=reason, by=by)
    inbox_add(users=[row.by], kind=Kind.ANSWERED, subject=f"release:{row.pk}", by=by)
