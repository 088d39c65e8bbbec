"""The raters of a scope as rows of JSON and of a CSV file."""

from collections.abc import Sequence
from typing import Any

from alignment.rater_quality.core import Agreement
from alignment.rater_quality.queries.answers import Given
from alignment.rater_quality.queries.criteria import Parting, partings
from alignment.rater_quality.queries.pairs import Matrix, matrix
from alignment.rater_quality.queries.raters import RaterRow, people_of, rater_rows, together
from alignment.rater_quality.queries.scope import QualityScope
from common.jsonl import iso

HEAD = (
    "rater", "kind", "labels", "compared", "agreeing", "agreement", "agreement_low", "agreement_high",
    "kappa", "kappa_low", "kappa_high", "tied", "alone", "decided", "decided_agreement", "gold",
    "gold_agreement", "submitted", "in_work", "skipped", "timed_chats", "rushed_chats", "seconds_an_answer",
    "changed_after_reveal", "first", "last",
)  # fmt: skip


def quality_document(scope: QualityScope, found: Given) -> dict[str, Any]:
    """Everything the pages show, as one JSON document."""
    people = people_of(scope, found)
    return {
        "set": scope.chat_set.name,
        "job": scope.job.name if scope.job else None,
        "criterion": scope.only or None,
        "labels": len(found.answers),
        "everybody": _agreement(together(found)),
        "raters": [_rater(row) for row in rater_rows(scope, found, people)],
        "pairs": _pairs(matrix(found, people)),
        "criteria": [_criterion(row) for row in partings(scope, found)],
    }


def table_lines(rows: Sequence[RaterRow]) -> list[dict[str, Any]]:
    """A line a rater with the columns of HEAD."""
    return [dict(zip(HEAD, _columns(row), strict=True)) for row in rows]


def _columns(row: RaterRow) -> list[Any]:
    share, kappa = row.others.share, row.others.kappa
    return [
        row.person.name,
        row.person.kind,
        row.labels,
        row.others.n,
        row.others.agreeing,
        *_figures(share.as_json()),
        *_figures(kappa.as_json()),
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


def _figures(estimate: dict[str, Any]) -> list[Any]:
    return [_rounded(estimate[name]) for name in ("value", "low", "high")]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _agreement(found: Agreement) -> dict[str, Any]:
    return {
        "n": found.n,
        "chats": found.chats,
        "agreeing": found.agreeing,
        "agreement": found.share.as_json(),
        "kappa": found.kappa.as_json(),
    }


def _rater(row: RaterRow) -> dict[str, Any]:
    return {
        "rater": row.person.name,
        "kind": row.person.kind,
        "labels": row.labels,
        "others": _agreement(row.others) | {"tied": row.tied, "alone": row.alone},
        "decided": _agreement(row.decided),
        "gold": _agreement(row.gold),
        "over_time": [part.as_json() for part in row.course],
        "submitted": row.progress.submitted,
        "in_work": row.progress.in_work,
        "skipped": row.progress.skipped,
        "skip_reasons": dict(row.progress.reasons),
        "timed_chats": row.pace.timed,
        "rushed_chats": row.pace.rushed,
        "seconds_an_answer": row.pace.seconds,
        "changed_after_reveal": row.changed,
    }


def _pairs(found: Matrix) -> list[dict[str, Any]]:
    """Each pair once, those without a shared question left out."""
    names = [person.name for person in found.people]
    return [
        {"raters": [names[i], names[j]], "n": pair.n, "agreement": pair.agreement, "kappa": pair.kappa}
        for i, row in enumerate(found.rows)
        for j, pair in enumerate(row)
        if j > i and pair is not None and pair.n
    ]


def _criterion(row: Parting) -> dict[str, Any]:
    return {
        "key": row.criterion.key,
        "raters": row.raters,
        "shared_chats": row.shared,
        "parted_chats": row.parted,
        "disagreement": row.disagreement,
        "krippendorff_alpha": row.alpha,
    }
