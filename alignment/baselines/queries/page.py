"""Context of the baselines panel, on the page of a report or of one criterion."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.text import capfirst, get_text_list

from alignment.baselines.core import Finding
from alignment.baselines.queries.baselines import Baselines
from alignment.comparison.queries.scope import Scope
from alignment.reports.queries.page import scope_query

BASELINES = {"majority": "the majority class", "bag_of_words": "the bag of words"}
WORDS = {
    Finding.BEATS: "better than",
    Finding.NOT_SHOWN: "not shown to beat",
    Finding.WORSE: "worse than",
}
CHIPS = {Finding.BEATS: "aligned", Finding.NOT_SHOWN: "few", Finding.WORSE: "not"}


def baselines_page(scope: Scope, baselines: Baselines, *, only: str = "") -> dict[str, Any]:
    """Build the context of `alignment/baselines/_panel.html`; `only`, a key, limits it to one criterion."""
    context = {"baselines_url": _url(scope, only), "training": baselines.training, "reason": baselines.reason}
    if (body := baselines.body) is None:
        return context
    names = {row.key: row.name for row in scope.criteria if only in ("", row.key)}
    rows = [
        row | {"name": names[row["key"]], "results": _results(row)}
        for row in body["criteria"]
        if row["key"] in names
    ]
    shown = {
        "rows": rows,
        "headline": headline(rows),
        "sampled": body["used"] < body["answered"],
        "not_beaten": [key for key in body["not_beaten"] if key in names],
    }
    return context | {"baselines": body | shown}


def _url(scope: Scope, only: str) -> str:
    """URL of the htmx fragment."""
    assert scope.run is not None  # noqa: S101  baselines are a judge's
    url = reverse("alignment:baselines", args=[scope.run.pk])
    if not only:
        return url + scope_query(scope)
    return f"{url}?{urlencode({'criterion': only})}{scope_query(scope, start='&')}"


def headline(rows: Sequence[dict[str, Any]]) -> str:
    """Criteria on which the judge does not beat a baseline, in words."""
    if not rows:
        return "No criterion to compare."
    sentences = []
    for part, baseline in BASELINES.items():
        for which in (Finding.WORSE, Finding.NOT_SHOWN):
            names = [row["name"] for row in rows if row[part]["finding"] == which]
            if names:
                sentences.append(f"The judge is {WORDS[which]} {baseline} on {get_text_list(names, 'and')}.")
    unknown = [row["name"] for row in rows if _is_unknown(row)]
    compared = len(rows) - len(unknown)
    if not sentences and compared:
        every = f"{compared} of {len(rows)} criteria" if unknown else "every criterion"
        if len(rows) == 1:
            every = rows[0]["name"]
        sentences.append(f"The judge beats both baselines on {every}.")
    if unknown:
        sentences.append(f"Not compared with both: {get_text_list(unknown, 'and')}.")
    return " ".join(sentences)


def _is_unknown(row: dict[str, Any]) -> bool:
    return any(row[part]["finding"] is None for part in BASELINES)


def _results(row: dict[str, Any]) -> list[dict[str, str]]:
    """Result of a row for each baseline; a single one if both are beaten."""
    findings = {part: row[part]["finding"] for part in BASELINES}
    if set(findings.values()) == {Finding.BEATS}:
        return [{"chip": CHIPS[Finding.BEATS], "words": "Beats both"}]
    results, reasons = [], []
    for part, which in findings.items():
        if which is not None:
            results.append({"chip": CHIPS[which], "words": capfirst(f"{WORDS[which]} {BASELINES[part]}")})
        elif (reason := row["undefined"].get(f"{part}.difference", "")) not in reasons:
            reasons.append(reason)
    return [*results, *({"chip": "", "words": reason} for reason in reasons)]
