"""An alignment report as a table for the terminal."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from alignment.reports.core.registry import BY_KEY, Statistic, Table, columns
from alignment.reports.core.sensitivity import RATES
from alignment.reports.core.status import LABEL_AGAIN
from labeling.consensus.core.dropped import DroppedLabels

STATUS = {
    "aligned": "aligned",
    "not_aligned": "not aligned",
    "not_enough_labels": "not enough labels",
    "raters_disagree": "raters disagree",
}
NAME = 30  # characters
NARROW, WIDE = 5, 18  # the narrowest column; a column with intervals
WITH_INTERVAL = ("balanced_accuracy", "human.krippendorff_alpha")


def report_table(report: Mapping[str, Any]) -> str:
    """Return a report (the JSON of `alignment_report`) as lines of text; undefined values are "–".

    The columns are those of the registry, and the status. Notices, such as on automatic labels, follow the
    first line. The human ceiling is the balanced accuracy of a
    rater against the majority of the others.
    """
    judge, criteria = report["judge"], report["criteria"]
    split = f", split {report['split']}" if report["split"] else ""
    compared = f"{judge['name']} against {report['against']}" if judge else "human labels only"
    statistics = columns(Table.TERMINAL_JUDGE if judge else Table.TERMINAL_RATERS)
    cells = [f"{one.head:>{_width(one)}}" for one in statistics]
    head = " ".join([f"{'criterion':<{NAME}}", *cells]) + ("  status" if judge else "")
    lines = [f"{report['set'] or '–'}{split}: {report['chats']} chats, {compared}"]
    lines += [f"Note: {notice}." for notice in report["pinned"]["notices"]]
    lines += [head, "-" * len(head)]
    lines += [_row(criterion, statistics, judged=bool(judge)) for criterion in criteria]
    lines += [f"{row['key']}: {row['questions']['words']}." for row in criteria if row["questions"]["words"]]
    lines += [_carried(row["key"], row["carried"]) for row in criteria if row["carried"]]
    lines += [
        f"{DroppedLabels(row['key'], **row['dropped_labels']).words}."
        for row in criteria
        if row["dropped_labels"]
    ]
    lines += [_between(row) for row in criteria if row["sensitivity"]]
    lines += [_session_score(report["session_score"], judged=bool(judge))]
    number = Counter(criterion["status"] for criterion in criteria)
    if few := number["not_enough_labels"]:
        lines.append(
            f"{few} of {len(criteria)} criteria have too few human True or False labels for a status."
        )
    if disagree := number["raters_disagree"]:
        lines.append(f"On {disagree} of {len(criteria)} criteria the raters disagree: {LABEL_AGAIN}.")
    return "\n".join(lines)


def _session_score(score: Mapping[str, Any], *, judged: bool) -> str:
    """Return the line of the session score.

    >>> score = {"human": {"value": 0.5, "low": 0.4, "high": 0.6}, "n": 20, "partial": 1}
    >>> _session_score({**score, "subjective_counted": False}, judged=False)
    'Session score: raters 0.50 (0.40–0.60). 20 chats, 1 partial. Subjective criteria not counted.'
    """
    parts = [f"raters {_estimate(score['human'])}"]
    if judged:
        parts += [
            f"judge {_estimate(score['judge'])}",
            f"difference {_estimate(score['difference'])}",
            f"correlation {_estimate(score['correlation'])}",
        ]
    counted = "counted" if score["subjective_counted"] else "not counted"
    return (
        f"Session score: {', '.join(parts)}. {score['n']:,} chats, {score['partial']:,} partial. "
        f"Subjective criteria {counted}."
    )


def _estimate(estimate: Mapping[str, Any]) -> str:
    text = _number(estimate["value"])
    if estimate["low"] is None:
        return text
    return f"{text} ({_number(estimate['low'])}–{_number(estimate['high'])})"


def _carried(key: str, carried: Mapping[str, Any]) -> str:
    """Return the line of a criterion with labels that carried over from others."""
    olds = ", ".join(carried["from"])
    return f"{key}: {carried['labels']:,} of {carried['of']:,} labels were carried over from {olds}."


def _between(criterion: Mapping[str, Any]) -> str:
    """Return the worst and the best case of a criterion with unresolved chats."""
    found, cases = criterion["sensitivity"], ("worst", "best")
    rates = (
        f"{BY_KEY[name].label} {' to '.join(_number(found[case][name]) for case in cases)}" for name in RATES
    )
    return f"{criterion['key']}, unresolved chats counted against or for the judge: {', '.join(rates)}."


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _row(criterion: Mapping[str, Any], statistics: tuple[Statistic, ...], *, judged: bool) -> str:
    cells = [f"{_cell(one, criterion):>{_width(one)}}" for one in statistics]
    row = " ".join([f"{criterion['key'][:NAME]:<{NAME}}", *cells])
    return f"{row}  {STATUS.get(criterion['status'], '–')}" if judged else row


def _width(statistic: Statistic) -> int:
    return WIDE if statistic.key in WITH_INTERVAL else max(NARROW, len(statistic.head))


def _cell(statistic: Statistic, criterion: Mapping[str, Any]) -> str:
    value = statistic.of(criterion)
    estimate = value if isinstance(value, Mapping) else {"value": value}
    if estimate["value"] is None:
        return "–"
    digits = statistic.decimals
    text = f"{estimate['value']:.{digits}f}"
    if statistic.key not in WITH_INTERVAL or estimate["low"] is None:
        return text
    return f"{text} ({estimate['low']:.{digits}f}–{estimate['high']:.{digits}f})"
