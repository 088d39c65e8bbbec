"""The sentence above a report: the number of criteria with each status."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from alignment.reports.core.table_view import shown_status
from alignment.reports.queries.reports import POLICY

EACH_RATER = "The judge is compared with each rater, so criteria have no status."


def status_counts(criteria: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count the criteria by status; subjective criteria count as directional."""
    return Counter(status for entry in criteria if (status := shown_status(entry)))


def headline(criteria: list[dict[str, Any]], *, judged: bool, chats: int) -> str:
    """Return the sentence of a live report."""
    if not chats:
        return "No chats to compare."
    if not judged:
        overlap = sum(1 for row in criteria if row["human"]["overlap"])
        return f"{overlap} of {_criteria(len(criteria))} have chats with two raters or more."
    number = status_counts(criteria)
    if plain := _without_status(number):
        return plain
    aligned, not_aligned, few, disagree, directional = _in_order(number)
    total = aligned + not_aligned + few + disagree
    if few == total and chats < POLICY.minimum_true + POLICY.minimum_false:
        needed = f"{POLICY.minimum_true} human True and {POLICY.minimum_false} human False labels"
        there = "there is 1 chat" if chats == 1 else f"there are {chats} chats"
        return f"Too few chats for a status: each criterion needs {needed}, and {there}."
    sentences = [
        f"The judge is aligned with the raters on {aligned} of {_criteria(total)}.",
        f"{not_aligned} {'is' if not_aligned == 1 else 'are'} not aligned." if not_aligned else "",
        f"{few} {'has' if few == 1 else 'have'} too few labels." if few else "",
        f"On {disagree} the raters disagree." if disagree else "",
        f"{directional} more {'is' if directional == 1 else 'are'} directional only." if directional else "",
    ]
    return " ".join(filter(None, sentences))


def stored_headline(criteria: list[dict[str, Any]]) -> str:
    """Return the sentence of a stored report, in the past tense."""
    number = status_counts(criteria)
    if plain := _without_status(number):
        return plain
    aligned, not_aligned, few, disagree, directional = _in_order(number)
    total = aligned + not_aligned + few + disagree
    among = f"; on {disagree} the raters disagreed" if disagree else ""
    were = "was" if directional == 1 else "were"
    more = f"; {directional} more {were} directional only" if directional else ""
    return (
        f"The judge was aligned with the raters on {aligned} of {_criteria(total)}, "
        f"not aligned on {not_aligned}; {few} had too few labels{among}{more}."
    )


def _in_order(number: Counter[str]) -> tuple[int, int, int, int, int]:
    return (
        number["aligned"],
        number["not_aligned"],
        number["not_enough_labels"],
        number["raters_disagree"],
        number["directional"],
    )


def _without_status(number: Counter[str]) -> str:
    """Return the sentence of a report without a status: each rater, or subjective criteria only."""
    total = number.total()
    if not total:
        return EACH_RATER
    if number["directional"] < total:
        return ""
    whole = "The criterion is" if total == 1 else f"All {total} criteria are"
    return f"{whole} directional only."


def _criteria(number: int) -> str:
    return f"{number} criteri{'on' if number == 1 else 'a'}"
