"""Settings of experiments."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import partial

from django.db import transaction
from django.utils import timezone

from alignment.experiments.worker import EXPERIMENTS, experiment_due
from alignment.models.experiments import Experiment
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.people.services.audit import audit

ALPHAS = (0.01, 0.05, 0.1)


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """The settings that a lead chooses.

    Parameters
    ----------
    control : a variant. shares : planned share of the units by variant, in any unit; {}: all the same.
    starts_on : earlier chats do not count. alpha : one of `ALPHAS`.
    """

    control: str
    shares: Mapping[str, float] = field(default_factory=dict)
    starts_on: date | None = None
    alpha: float = 0.05

    @classmethod
    def of(cls, row: Experiment) -> "ExperimentSettings":
        """Return those of an experiment."""
        return cls(row.control, row.shares, row.starts_on, row.alpha)


def experiment_change(*, row: Experiment, settings: ExperimentSettings, by: User) -> Experiment:
    """Store the settings and count the experiment again. Raises FieldProblem."""
    _check(row, settings)
    with transaction.atomic():
        row = Experiment.objects.select_for_update(of=("self",)).get(pk=row.pk)
        row.control, row.shares = settings.control, dict(settings.shares)
        row.starts_on, row.alpha = settings.starts_on, settings.alpha
        row.updated_at, row.updated_by = timezone.now(), by
        row.save(update_fields=["control", "shares", "starts_on", "alpha", "updated_at", "updated_by"])
        experiment_due(row.pk)
        detail = asdict(settings) | {"starts_on": settings.starts_on and settings.starts_on.isoformat()}
        audit(actor=by, verb="experiment changed", obj=row, **detail)
        transaction.on_commit(partial(EXPERIMENTS.enqueue, row.pk), robust=True)
    row.refresh_from_db()
    return row


def _check(row: Experiment, settings: ExperimentSettings) -> None:
    names = set(row.variants.values_list("variant", flat=True))
    if settings.control and settings.control not in names:
        raise FieldProblem("control", f"there is no variant {settings.control!r}")
    if unknown := sorted(set(settings.shares) - names):
        raise FieldProblem("shares", f"there is no variant {unknown[0]!r}")
    if settings.shares and set(settings.shares) != names:
        missing = sorted(names - set(settings.shares))[0]
        raise FieldProblem("shares", f"variant {missing!r} has no share: give one for each variant, or none")
    if any(not 0 < share < float("inf") for share in settings.shares.values()):
        raise FieldProblem("shares", "each share must be above 0")
    if settings.alpha not in ALPHAS:
        raise FieldProblem("alpha", f"must be one of {', '.join(map(str, ALPHAS))}")
