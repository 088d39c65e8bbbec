"""The monitoring pages as JSON documents and as rows of a table."""

from collections.abc import Iterator, Sequence
from typing import Any

from alignment.monitoring.core.corrected_rates import ProductionRates, Rate
from alignment.monitoring.core.series import Point, Series
from alignment.monitoring.queries.criterion import CriterionProduction
from alignment.monitoring.queries.judged import Window
from alignment.monitoring.queries.overview import Overview

HEAD = (
    *("kind", "key", "first_day", "last_day", "judge", "judged_chats", "chats", "covered", "segment"),
    *("uncorrected", "uncorrected_low", "uncorrected_high", "uncorrected_reason"),
    *("corrected", "corrected_low", "corrected_high", "corrected_method", "corrected_labels"),
    *("corrected_reason", "caution"),
)


def overview_document(found: Overview | None) -> dict[str, Any]:
    """Return the page of all criteria; without a judged chat its lists are empty."""
    if found is None:
        empty: dict[str, Any] = {name: [] for name in ("criteria", "dimensions", "coverage", "costs")}
        return {**window_json(None), **empty, "session_score": None, "session_scores": []}
    return {
        **window_json(found.window),
        "session_score": series_json(found.score),
        "subjective_counted": found.subjective,
        "criteria": [
            {"key": one.criterion.key, "tier": one.criterion.tier, **series_json(one.series)}
            for one in found.lines
        ],
        "dimensions": [{"key": one.key, **series_json(one.series)} for one in found.dimensions],
        "coverage": [
            {"topic": one.topic.key, "chats": one.chats, "judged": one.judged, "weight": one.weight}
            for one in found.coverage
        ],
        "session_scores": [{"low": one.low, "high": one.high, "share": one.share} for one in found.bins],
        "costs": [
            {"day": one.day.isoformat(), "usd": float(one.usd), "runs_of_unknown_cost": one.unknown}
            for one in found.costs
        ],
    }


def criterion_document(found: CriterionProduction) -> dict[str, Any]:
    """Return the page of a criterion."""
    return {
        **window_json(found.window),
        "key": found.criterion.key,
        **series_json(found.series),
        "topics": [{"key": one.key, **series_json(one.series)} for one in found.topics],
        "variants": [
            {
                "experiment": one.experiment,
                "variant": one.variant,
                "judged": one.judged,
                **rates_json(one.rates),
            }
            for one in found.variants
        ],
    }


def window_json(window: Window | None) -> dict[str, Any]:
    """Return the days of a page."""
    if window is None:
        return {"first_day": None, "last_day": None, "step": None}
    return {
        "first_day": window.first.isoformat(),
        "last_day": window.last.isoformat(),
        "step": window.step.value,
    }


def series_json(found: Series) -> dict[str, Any]:
    """Return points and marks; only points of one segment are comparable."""
    return {
        "points": [_point_json(point) for point in found.points],
        "marks": [{"day": mark.day.isoformat(), "text": mark.text} for mark in found.marks],
    }


def _point_json(point: Point) -> dict[str, Any]:
    return {
        "first_day": point.first.isoformat(),
        "last_day": point.last.isoformat(),
        "judged_days": point.days,
        "judge": point.judge.name,
        "prompt_version": point.judge.prompt,
        "judged_chats": point.judged,
        "chats": point.chats,
        "covered": point.covered,
        "segment": point.segment,
        **rates_json(point.rates),
    }


def rates_json(rates: ProductionRates) -> dict[str, Any]:
    """Return a rate by each method; `corrected` is the one to use."""
    alone = {} if rates.labels is None else {"audit_labels_alone": _rate_json(rates.labels)}
    return {
        "uncorrected": _rate_json(rates.uncorrected),
        "corrected": _rate_json(rates.corrected),
        "curated_labels": _rate_json(rates.lang_reiczigel),
        "random_audit": _rate_json(rates.ppi),
        **alone,
    }


def _rate_json(rate: Rate) -> dict[str, Any]:
    return rate.estimate.as_json() | {
        "method": rate.method.value,
        "reason": rate.reason,
        "labels": rate.labels,
        "weight": rate.weight,
    }


# ---------- rows of a table


def overview_rows(found: Overview | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each point of the page."""
    if found is None:
        return
    yield from _rows("session_score", "", found.score)
    for dimension in found.dimensions:
        yield from _rows("dimension", dimension.key, dimension.series)
    for line in found.lines:
        yield from _rows("criterion", line.criterion.key, line.series)


def criterion_rows(found: CriterionProduction) -> Iterator[dict[str, Any]]:
    """Yield a row for each point of a criterion and of its topics, and for each variant."""
    yield from _rows("criterion", found.criterion.key, found.series)
    for topic in found.topics:
        yield from _rows("topic", topic.key, topic.series)
    for one in found.variants:
        values = (
            *("variant", f"{one.experiment}: {one.variant}"),
            *(found.window.first.isoformat(), found.window.last.isoformat(), ""),
            *(one.judged, None, None, None),
            *_values(one.rates.uncorrected),
            one.rates.uncorrected.estimate.reason,
            *_values(one.rates.corrected),
            *_method(one.rates.corrected),
        )
        yield dict(zip(HEAD, values, strict=True))


def _rows(kind: str, key: str, found: Series) -> Iterator[dict[str, Any]]:
    for point in found.points:
        values: Sequence[Any] = (
            *(kind, key, point.first.isoformat(), point.last.isoformat(), point.judge.name),
            *(point.judged, point.chats, point.covered, point.segment),
            *_values(point.uncorrected),
            point.uncorrected.estimate.reason,
            *_values(point.corrected),
            *_method(point.corrected),
        )
        yield dict(zip(HEAD, values, strict=True))


def _method(rate: Rate) -> tuple[Any, ...]:
    return (rate.method.value, rate.labels, rate.estimate.reason, rate.estimate.flag)


def _values(rate: Rate) -> tuple[float | None, ...]:
    interval = rate.estimate.interval
    bounds = (interval.low, interval.high) if interval else (None, None)
    return (rate.estimate.value, *bounds)
