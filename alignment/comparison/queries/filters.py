"""The filters of report and list pages: name, label and choices of each, as `_filters.html` shows them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from evaluation.models.judges import Engine
from evaluation.runs.queries.runs import OUTSIDE
from labeling.models.chats import Split

Choices = Sequence[tuple[str, str]]  # value, label


def same_words(values: Iterable[str]) -> Choices:
    """Return choices that are labelled with their values."""
    return tuple((value, value) for value in values)


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of the address.

    Parameters
    ----------
    key : its name in the query string.
    label : its name on the page.
    everything : label of the choice that does not narrow; '' if there is no such choice.
    choices : the choices that do not depend on the data.
    """

    key: str
    label: str
    everything: str = "all"
    choices: Choices = ()


FILTERS = {
    one.key: one
    for one in (
        Filter("set", "Chat set"),
        Filter("engine", "Engine", choices=same_words((*Engine.values, OUTSIDE))),
        Filter("version", "Version"),
        Filter("run", "Run", everything=""),
        Filter("split", "Split", choices=same_words(Split.values)),
        Filter("against", "Ground truth", everything=""),
        Filter("topic", "Topic"),
        Filter("since", "Chats since"),
        Filter("until", "Chats until"),
        Filter("criterion", "Criterion"),
        Filter("cause", "Cause"),
        Filter("state", "Status", everything=""),
        Filter("owner", "Owner"),
    )
}


def chosen_filter(
    key: str, chosen: str, choices: Choices | None = None, *, required: bool = False
) -> dict[str, Any]:
    """Return a filter of the registry as a select; `choices` replace the registry's.

    A required filter has no choice for everything. Raises KeyError if the registry has no such filter.
    """
    one = FILTERS[key]
    everything = [("", one.everything)] if one.everything and not required else []
    return select_filter(
        key, one.label, [*everything, *(one.choices if choices is None else choices)], chosen
    )


def day_filter(key: str, day: date | None) -> dict[str, Any]:
    """Return a filter of the registry as a date field."""
    return {"name": key, "label": FILTERS[key].label, "day": day}


def select_filter(name: str, label: str, options: Choices, chosen: str) -> dict[str, Any]:
    """Return a select with these options."""
    rows = [{"value": value, "label": text, "selected": value == chosen} for value, text in options]
    return {"name": name, "label": label, "options": rows}
