"""Experiments as JSON documents, and their metric rows in the shape of warehouses."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from alignment.experiments.core.comparison import Difference, Judge
from alignment.experiments.queries.counting import counted_metrics
from alignment.experiments.queries.pages import (
    Cell,
    Comparison,
    CriterionRow,
    ExperimentFacts,
    Reader,
    shown_metrics,
)
from alignment.models.experiments import Experiment, ExperimentMetric
from alignment.monitoring.core.corrected_rates import Rate
from alignment.statistics.estimates import Estimate

COLUMNS = ("unit_id", "timestamp", "experiment_id", "variation_id", "metric", "value", "weight")
AT_ONCE = 5000


def facts_json(facts: ExperimentFacts) -> dict[str, Any]:
    """Return an experiment without its rates."""
    row, ratio = facts.row, facts.ratio
    return {
        "key": row.key,
        "control": facts.control or None,
        "alpha": row.alpha,
        "starts_on": row.starts_on.isoformat() if row.starts_on else None,
        "first_day": facts.first.isoformat() if facts.first else None,
        "last_day": facts.last.isoformat() if facts.last else None,
        "counted_at": row.counted_at.isoformat() if row.counted_at else None,
        "up_to_date": facts.is_counted,
        "variants": [
            {
                "variant": one.name,
                "chats": one.chats,
                "units": one.units,
                "judged_units": one.judged_units,
                "expected_share": one.share,
            }
            for one in facts.variants
        ],
        "sample_ratio": {"p": ratio.p, "mismatch": ratio.mismatch} if ratio else None,
        "units_of_several_variants": row.mixed_units,
        "chats_without_unit": row.without_unit,
        "chats_without_variant": row.without_variant,
    }


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Return an experiment with its rates and differences."""
    return {
        **facts_json(found.facts),
        "for_leads": found.for_leads,
        "judges": list(found.judges),
        "criteria": [_criterion_json(row) for row in found.criteria],
    }


def _criterion_json(row: CriterionRow) -> dict[str, Any]:
    return {
        "key": row.criterion.key,
        "tier": row.criterion.tier,
        "labels": _labels(row.judge),
        "variants": [_cell_json(one) for one in row.cells],
    }


def _labels(judge: Judge) -> int:
    return judge.table.n if judge.table else 0


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {
        "variant": cell.variant.name,
        "chats": cell.chats,
        "units": cell.units,
        "failed": cell.failed,
        "uncorrected": _rate_json(cell.uncorrected),
        "corrected": _rate_json(cell.corrected),
        "difference": _difference_json(cell.difference) if cell.difference else None,
        "decision": cell.decision.value if cell.decision else None,
    }


def _rate_json(rate: Rate) -> dict[str, Any]:
    return _estimate_json(rate.estimate) | {"method": rate.method.value}


def _estimate_json(estimate: Estimate) -> dict[str, Any]:
    return estimate.as_json() | {"reason": estimate.reason or None}


def _difference_json(found: Difference) -> dict[str, Any]:
    return {
        "uncorrected": _estimate_json(found.uncorrected),
        "corrected": _estimate_json(found.corrected),
        "detectable": found.detectable,
    }


# ---------- metric rows


def listed_metrics(row: Experiment, *, user: Reader, after: int = 0) -> QuerySet[ExperimentMetric]:
    """Return the rows that count, on chats that the user may read, in the order in which they were added."""
    rows = shown_metrics(counted_metrics(row), user=user).filter(pk__gt=after)
    return rows.select_related("criterion").order_by("pk")


def metric_json(row: Experiment, one: ExperimentMetric) -> dict[str, Any]:
    """Return a row as A/B platforms read it: value 1 for a pass, 0 for a fail.

    The first fields have the names of `COLUMNS`.
    """
    values = (one.unit, one.at, row.key, one.variant, one.criterion.key, int(one.passed), one.weight)
    return dict(zip(COLUMNS, values, strict=True))


def all_metrics(row: Experiment, *, user: Reader) -> Iterator[dict[str, Any]]:
    """Yield every row; memory does not grow with them, and no statement reads longer than a batch."""
    last = 0
    while batch := list(listed_metrics(row, user=user, after=last)[:AT_ONCE]):
        for one in batch:
            yield metric_json(row, one)
        last = batch[-1].pk
