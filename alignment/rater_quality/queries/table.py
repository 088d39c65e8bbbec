"""Raters of a scope as JSON and as CSV rows."""

from collections.abc import Sequence
from typing import Any

from alignment.rater_quality.core import Agreement
from alignment.rater_quality.queries.answers import Labels
from alignment.rater_quality.queries.criteria import CriterionAgreement, criterion_agreements
from alignment.rater_quality.queries.pairs import Matrix, matrix
from alignment.rater_quality.queries.raters import RaterRow, overall_agreement, people_of, rater_rows
from alignment.rater_quality.queries.scope import QualityScope
from common.jsonl import iso

HEAD = (
    "rater", "kind", "labels", "compared", "agreeing", "agreement", "agreement_low", "agreement_high",
    "kappa", "kappa_low", "kappa_high", "tied", "alone", "decided", "decided_agreement", "gold",
    "gold_agreement", "submitted", "in_work", "skipped", "timed_chats", "rushed_chats", "seconds_an_answer",
    "changed_after_reveal", "first", "last",
)  # fmt: skip


def quality_document(scope: QualityScope, labels: Labels) -> dict[str, Any]:
    """Return the contents of the quality pages as one JSON document."""
    people = people_of(scope, labels)
    return {
        "set": scope.chat_set.name,
        "job": scope.job.name if scope.job else None,
        "criterion": scope.only or None,
        "labels": len(labels.answers),
        "carried": scope.carried,
        "dropped_labels": [{"criterion": row.key, **row.as_json()} for row in scope.dropped],
        "everybody": _agreement(overall_agreement(labels)),
        "raters": [_rater(row) for row in rater_rows(scope, labels, people)],
        "pairs": _pairs(matrix(labels, people)),
        "criteria": [_criterion(row) for row in criterion_agreements(scope, labels)],
    }


def csv_rows(rows: Sequence[RaterRow]) -> list[dict[str, Any]]:
    """Return one row per rater with the columns of HEAD."""
    return [dict(zip(HEAD, _columns(row), strict=True)) for row in rows]


def _columns(row: RaterRow) -> list[Any]:
    share, kappa = row.others.share, row.others.kappa
    return [
        row.person.name,
        row.person.kind,
        row.labels,
        row.others.n,
        row.others.agreeing,
        *_estimate(share.as_json()),
        *_estimate(kappa.as_json()),
        row.tied,
        row.alone,
        row.decided.n,
        _rounded(row.decided.share.value),
        row.gold.n,
        _rounded(row.gold.share.value),
        row.progress.submitted,
        row.progress.in_work,
        row.progress.skipped,
        row.pace.timed,
        row.pace.rushed,
        _rounded(row.pace.seconds),
        row.changed,
        iso(row.first) if row.first else None,
        iso(row.last) if row.last else None,
    ]


def _estimate(estimate: dict[str, Any]) -> list[Any]:
    return [_rounded(estimate[name]) for name in ("value", "low", "high")]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _agreement(agreement: Agreement) -> dict[str, Any]:
    return {
        "n": agreement.n,
        "chats": agreement.chats,
        "agreeing": agreement.agreeing,
        "agreement": agreement.share.as_json(),
        "kappa": agreement.kappa.as_json(),
    }


def _rater(row: RaterRow) -> dict[str, Any]:
    return {
        "rater": row.person.name,
        "kind": row.person.kind,
        "labels": row.labels,
        "others": _agreement(row.others) | {"tied": row.tied, "alone": row.alone},
        "decided": _agreement(row.decided),
        "gold": _agreement(row.gold),
        "over_time": [part.as_json() for part in row.trend],
        "submitted": row.progress.submitted,
        "in_work": row.progress.in_work,
        "skipped": row.progress.skipped,
        "skip_reasons": dict(row.progress.reasons),
        "timed_chats": row.pace.timed,
        "rushed_chats": row.pace.rushed,
        "seconds_an_answer": row.pace.seconds,
        "changed_after_reveal": row.changed,
    }


def _pairs(matrix: Matrix) -> list[dict[str, Any]]:
    """Return each pair with a shared question once."""
    names = [person.name for person in matrix.raters]
    return [
        {"raters": [names[i], names[j]], "n": pair.n, "agreement": pair.agreement, "kappa": pair.kappa}
        for i, row in enumerate(matrix.rows)
        for j, pair in enumerate(row)
        if j > i and pair is not None and pair.n
    ]


def _criterion(row: CriterionAgreement) -> dict[str, Any]:
    return {
        "key": row.criterion.key,
        "raters": row.raters,
        "shared_chats": row.shared,
        "parted_chats": row.disagreements,
        "disagreement": row.disagreement,
        "krippendorff_alpha": row.alpha,
    }
