"""Judge profiles as lists and pages show them."""

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, QuerySet

from common.problems import FieldProblem
from evaluation.judges.core.spec import AutoDebates, JudgeSpec, spec_from_json
from evaluation.judges.queries.recipes import recipe_line
from evaluation.models.judges import Judge, JudgeProfile, JudgePrompt
from evaluation.models.runs import Verdict
from labeling.models.rubric import Criterion

EARLIER: AutoDebates = "context"


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """A profile with its recipe in one line; `problem` is why the recipe cannot be read."""

    profile: JudgeProfile
    line: str
    engine: str
    problem: str
    judges: int


def profile_choice(profile: JudgeProfile) -> JudgeSpec:
    """Return a profile's recipe. Raises FieldProblem if this version cannot read it."""
    return spec_from_json(profile_recipe(profile))


def profile_recipe(profile: JudgeProfile) -> dict[str, Any]:
    """Return a profile's recipe as JSON; one of engine auto stored before `auto_debates` keeps its rule."""
    earlier = {"auto_debates": EARLIER} if profile.config.get("engine") == "auto" else {}
    return earlier | dict(profile.config)


def profile_overridden(profile: JudgeProfile, **changes: Any) -> JudgeSpec:
    """Return a profile's recipe with the run's own settings; None or "" keeps the profile's."""
    overrides = {name: value for name, value in changes.items() if value not in (None, "")}
    return replace(profile_choice(profile), **overrides)


def profile_rows() -> list[ProfileRow]:
    """Return every profile, the default first; one query."""
    rows = JudgeProfile.objects.annotate(judges_made=Count("judges")).order_by("-is_default", "name")
    return [_row(row, row.judges_made) for row in rows]


def default_profile() -> JudgeProfile | None:
    """Return the profile used when none is named."""
    return JudgeProfile.objects.filter(is_default=True).first()


def profile_judges(profile: JudgeProfile) -> QuerySet[Judge]:
    """Return the judges that runs created from this profile, newest first, with their number of runs."""
    return Judge.objects.filter(profile=profile).annotate(run_count=Count("runs")).order_by("-id")


def is_judged(criterion: Criterion) -> bool:
    """Whether a judge has been made for the criterion, or verdicts on it imported."""
    judged = JudgePrompt.objects.filter(criterion=criterion).exists()
    return judged or Verdict.objects.filter(criterion=criterion).exists()


def _row(profile: JudgeProfile, judges: int) -> ProfileRow:
    try:
        choice = profile_choice(profile)
    except FieldProblem as problem:
        return ProfileRow(profile, "", "", str(problem), judges)
    return ProfileRow(profile, recipe_line(choice), choice.engine, "", judges)
