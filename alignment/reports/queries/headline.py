"""A report in a sentence or two: how many criteria stand where."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from alignment.reports.queries.reports import POLICY

EACH_RATER = "The judge is compared with each rater in turn, which gives no status."


def counted(criteria: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How many criteria of a report have each status; subjective ones are directional whatever theirs is."""
    return Counter(
        "directional" if entry["tier"] == "subjective" else entry["status"]
        for entry in criteria
        if entry["status"]
    )


def headline(criteria: list[dict[str, Any]], *, judged: bool, chats: int) -> str:
    """Of a report of today."""
    if not chats:
        return "There is no chat here to compare."
    if not judged:
        overlap = sum(1 for row in criteria if row["human"]["overlap"])
        told = f"{overlap} of {_criteria(len(criteria))} have chats with two raters or more."
        return f"People's labels alone, without a judge: {told}"
    number = counted(criteria)
    if plain := _without_status(number):
        return plain
    aligned, parted, few, directional = _in_order(number)
    total = aligned + parted + few
    if few == total and chats < POLICY.minimum_true + POLICY.minimum_false:
        needed = f"{POLICY.minimum_true} human True and {POLICY.minimum_false} human False answers"
        why = f"each criterion needs {needed}, and there are {chats} chats."
        return f"Nothing can be called aligned yet: {why}"
    sentences = [
        f"The judge is aligned with people on {aligned} of {_criteria(total)}.",
        f"{parted} {'is' if parted == 1 else 'are'} not aligned." if parted else "",
        f"{few} {'has' if few == 1 else 'have'} too few answers to tell." if few else "",
        f"{directional} more {'is' if directional == 1 else 'are'} directional only." if directional else "",
    ]
    return " ".join(filter(None, sentences))


def stored_headline(criteria: list[dict[str, Any]]) -> str:
    """Of a stored report, which tells of then."""
    number = counted(criteria)
    if plain := _without_status(number):
        return plain
    aligned, parted, few, directional = _in_order(number)
    were = "was" if directional == 1 else "were"
    more = f"; {directional} more {were} directional only" if directional else ""
    return (
        f"The judge was aligned with people on {aligned} of {_criteria(aligned + parted + few)}, "
        f"not aligned on {parted}; {few} had too few answers to tell{more}."
    )


def _in_order(number: Counter[str]) -> tuple[int, int, int, int]:
    return (
        number["aligned"],
        number["not_aligned"],
        number["not_enough_labels"],
        number["directional"],
    )


def _without_status(number: Counter[str]) -> str:
    """Where no criterion is aligned or not: against each rater, or all of them are subjective."""
    total = number.total()
    if not total:
        return EACH_RATER
    if number["directional"] < total:
        return ""
    whole = "The criterion is" if total == 1 else f"All {total} criteria are"
    return f"{whole} directional only."


def _criteria(number: int) -> str:
    return f"{number} criteri{'on' if number == 1 else 'a'}"
