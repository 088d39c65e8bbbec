"""Judge profiles: named, editable recipes; one of them is the default."""

from dataclasses import dataclass

from django.db import transaction

from common.problems import FieldProblem, InputProblem
from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.spec import JudgeSpec, spec_to_json
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.services.judges import judge_ensure
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.nightly import NightlyJudge
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric
from labeling.people.services.audit import audit

DEFAULT, AUTO = "default", "auto"
LONGEST = 120


class ProfileRefused(InputProblem):
    """A refused change of a profile; the message says why."""


def profiles_ensure() -> None:
    """Create the shipped profiles, of which `direct` is the default, if no profile is it (idempotent)."""
    if JudgeProfile.objects.filter(is_default=True).exists():
        return
    JudgeProfile.objects.get_or_create(name=AUTO, defaults={"config": spec_to_json(JudgeSpec("auto"))})
    shipped, _ = JudgeProfile.objects.get_or_create(
        name=DEFAULT, defaults={"config": spec_to_json(JudgeSpec("direct"))}
    )
    _make_default(shipped)


@transaction.atomic
def profile_save(
    *, name: str, choice: JudgeSpec, profile: JudgeProfile | None = None, by: User | None = None
) -> JudgeProfile:
    """Create a profile, or change this one. Raises FieldProblem for an empty or used name.

    Runs started from it keep their judge.
    """
    name = name.strip()
    if not name:
        raise FieldProblem("name", "is missing")
    named = JudgeProfile.objects.filter(name=name)
    if (named.exclude(pk=profile.pk) if profile else named).exists():
        raise FieldProblem("name", "another profile has this name")
    row = profile or JudgeProfile()
    old = {"name": row.name, **row.config} if profile else {}
    row.name, row.config = name, spec_to_json(choice)
    row.save()
    new = {"name": row.name, **row.config}
    changed = {key: {"old": old.get(key), "new": new.get(key)} for key in new if old.get(key) != new[key]}
    if not profile:
        audit(actor=by, verb="profile created", obj=row, name=row.name)
    elif changed:
        audit(actor=by, verb="profile changed", obj=row, **{"name": row.name, **changed})
    return row


@transaction.atomic
def profile_duplicate(*, profile: JudgeProfile, by: User | None = None) -> JudgeProfile:
    """Copy a profile under a new name; the copy is not the default."""
    names = set(JudgeProfile.objects.values_list("name", flat=True))
    number, name = 1, _copy_name(profile.name, 1)
    while name in names:
        number += 1
        name = _copy_name(profile.name, number)
    row = JudgeProfile.objects.create(name=name, config=profile.config)
    audit(actor=by, verb="profile created", obj=row, name=row.name, copy_of=profile.name)
    return row


@transaction.atomic
def profile_make_default(*, profile: JudgeProfile, by: User | None = None) -> None:
    """Make this the profile that runs and regression tests use when none is named."""
    _make_default(profile)
    audit(actor=by, verb="profile made default", obj=profile, name=profile.name)


@transaction.atomic
def _make_default(profile: JudgeProfile) -> None:
    profiles_lock()
    JudgeProfile.objects.filter(is_default=True).exclude(pk=profile.pk).update(is_default=False)
    JudgeProfile.objects.filter(pk=profile.pk).update(is_default=True)


@transaction.atomic
def endpoint_use_by_default(*, endpoint: ConnectedEndpoint, by: User | None) -> JudgeProfile:
    """Let the default profile ask this endpoint in every role, with the first model that it offers.

    Its models at other endpoints are forgotten. Raises ProfileRefused for a disabled endpoint, or for one
    that offers no model.
    """
    profiles_ensure()
    profiles_lock()
    if not endpoint.enabled:
        raise ProfileRefused(f"{endpoint.name} is disabled: enable it first")
    if not endpoint.model_names:
        raise ProfileRefused(f"{endpoint.name} offers no model yet: test the connection and add one")
    row = JudgeProfile.objects.get(is_default=True)
    elsewhere = {"models": {}, "endpoints": {}, "formatter": ""}
    row.config = row.config | elsewhere | {"endpoint": endpoint.address, "model": endpoint.model_names[0]}
    row.save(update_fields=["config", "updated_at"])
    audit(actor=by, verb="profile changed", obj=row, name=row.name, endpoint=endpoint.name)
    return row


def profiles_lock() -> None:
    """Lock all profiles in one order, so that two leads who choose the default take turns."""
    list(JudgeProfile.objects.select_for_update(no_key=True).order_by("pk"))


@transaction.atomic
def profile_delete(*, profile: JudgeProfile, by: User | None = None) -> None:
    """Delete a profile; its judges and runs stay. Raises ProfileRefused for the default, or a plan's."""
    row = JudgeProfile.objects.select_for_update().get(pk=profile.pk)
    if row.is_default:
        raise ProfileRefused(f"{row.name} is the default profile: make another one the default first")
    if plan := NightlyJudge.objects.filter(profile=row).select_related("plan").first():
        raise ProfileRefused(f"the sample plan {plan.plan.name} uses it: choose another profile there")
    audit(actor=by, verb="profile deleted", obj=row, name=row.name)
    row.delete()


def _copy_name(name: str, number: int) -> str:
    ending = " copy" if number == 1 else f" copy {number}"
    return name[: LONGEST - len(ending)] + ending


@dataclass(frozen=True, slots=True)
class JudgeToday:
    """The judge of a recipe for one rubric, with today's champions and articles.

    `judge` is the row if a run has created it. `problem` is why there is no judge now.
    """

    rubric: str
    fingerprint: str = ""
    judge: Judge | None = None
    problem: str = ""


def judges_today(*, choice: JudgeSpec) -> list[JudgeToday]:
    """Return today's judge for each rubric; rows created to find out are rolled back."""
    try:
        endpoint = judge_endpoint(choice)
    except InputProblem as problem:
        return [JudgeToday(row.name, problem=str(problem)) for row in Rubric.objects.order_by("name")]
    return [_judge_today(choice, rubric, endpoint) for rubric in Rubric.objects.order_by("name")]


def _judge_today(choice: JudgeSpec, rubric: Rubric, endpoint: Endpoint) -> JudgeToday:
    criteria = list(
        rubric.criteria.filter(state=Criterion.State.ACTIVE)
        .select_related("dimension")
        .order_by("dimension__position", "position")
    )
    if not criteria:
        return JudgeToday(rubric.name, problem="the rubric has no active criterion")
    with transaction.atomic():
        fingerprint = judge_ensure(choice=choice, criteria=criteria, endpoint=endpoint, by=None).fingerprint
        transaction.set_rollback(True)
    return JudgeToday(rubric.name, fingerprint, Judge.objects.filter(fingerprint=fingerprint).first())
