"""How a reader looks at a report: tab, filters, order and open rows, as the address has them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alignment.reports.core.priorities import priority
from alignment.reports.core.status import Status

Row = Mapping[str, Any]

TABS = {
    "criteria": "Criteria",
    "matrices": "Matrices",
    "dimensions": "Dimensions",
    "engine": "Engine",
    "excluded": "Excluded",
    "all": "All statistics",
}
TABS_OF_RATERS = ("criteria", "excluded", "all")  # without a judge
LISTS = ("criteria", "matrices", "excluded", "all")  # tabs with a line for each criterion
DIRECTIONAL = "directional"  # instead of a status where the criterion is subjective
STATUSES = {
    Status.NOT_ALIGNED: "Not aligned",
    Status.RATERS_DISAGREE: "Raters disagree",
    Status.NOT_ENOUGH_LABELS: "Not enough labels",
    Status.ALIGNED: "Aligned",
    DIRECTIONAL: "Directional only",
}
EVERY_ROW = "all"


def shown_status(row: Row) -> str:
    """Return the status as pages show it: a subjective criterion is directional; '' without a status."""
    if not row["status"]:
        return ""
    return DIRECTIONAL if row["tier"] == "subjective" else str(row["status"])


@dataclass(frozen=True, slots=True)
class Column:
    """A column that sorts.

    Parameters
    ----------
    key, head, title : its name in the address, on the page, and in full.
    value : what sorts a row; None comes last in either direction.
    falls : whether the first click sorts downwards.
    numeric : whether its cells are numbers.
    """

    key: str
    head: str
    title: str
    value: Callable[[Row], Any]
    falls: bool = False
    numeric: bool = True


def _estimate(name: str) -> Callable[[Row], Any]:
    return lambda row: (row[name] or {}).get("value")


def _human(name: str) -> Callable[[Row], Any]:
    def value(row: Row) -> Any:
        found = row["human"][name]
        return found.get("value") if isinstance(found, Mapping) else found

    return value


PRIORITY = Column("", "Status", "Critical and worst first", priority, numeric=False)
_NAME = Column("name", "Criterion", "By name", lambda row: row["name"].casefold(), numeric=False)
_N = Column("n", "n", "Compared chats", lambda row: row["n"])
COLUMNS = (
    _NAME,
    PRIORITY,
    Column("balanced", "Balanced", "Balanced accuracy", _estimate("balanced_accuracy")),
    Column("tpr", "TPR", "Share of human True that the judge also answers True", _estimate("tpr")),
    Column("tnr", "TNR", "Share of human False that the judge also answers False", _estimate("tnr")),
    _N,
    Column("differ", "Disagree", "Disagreements", lambda row: row["disagreements"], falls=True),
    Column("step", "Next step", "By next step", lambda row: row["step_words"], numeric=False),
)
COLUMNS_OF_RATERS = (
    _NAME,
    Column("alpha", "Alpha", "Krippendorff’s alpha", _human("krippendorff_alpha")),
    Column("agreement", "Agreement", "Percent agreement", _human("percent_agreement")),
    Column("ac1", "AC1", "Gwet’s AC1", _human("gwet_ac1")),
    Column("n", "n", "Chats with a human True or False", lambda row: row["n"]),
    Column("true", "True", "Share of chats with a human True", lambda row: row["prevalence"]),
    Column("raters", "Raters", "Raters with labels here", _human("raters"), falls=True),
    Column("overlap", "Overlap", "Chats with two raters or more", _human("overlap"), falls=True),
)


@dataclass(frozen=True, slots=True)
class TableView:
    """The choices of the address; '' is the default of each.

    Parameters
    ----------
    judged : whether the report has a judge, which decides on tabs and columns.
    tab : one of `TABS`.
    status, dimension : the rows shown.
    sort : key of a column, with "-" before it downwards.
    open : key of the criterion whose details are open, or EVERY_ROW.
    """

    judged: bool = True
    tab: str = ""
    status: str = ""
    dimension: str = ""
    sort: str = ""
    open: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str], rows: Iterable[Row], *, judged: bool) -> "TableView":
        """Read the choice from a query string; unknown values are ignored."""
        rows = list(rows)
        known = {
            "tab": {*TABS} - {"criteria"} if judged else {*TABS_OF_RATERS[1:]},
            "status": {shown_status(row) for row in rows},
            "dimension": {row["dimension"] for row in rows},
            "sort": {f"{sign}{one.key}" for one in _columns(judged) for sign in ("", "-")},
            "open": {EVERY_ROW, *(row["key"] for row in rows)},
        }
        chosen = {name: query.get(name, "") for name in known}
        return cls(judged, **{name: value for name, value in chosen.items() if value in known[name]})

    @property
    def shown_tab(self) -> str:
        """The tab that is shown."""
        return self.tab or "criteria"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table."""
        return _columns(self.judged)

    def query(self, **changes: str) -> dict[str, str]:
        """Return the parameters of this view with these changes; without the defaults."""
        names = ("tab", "status", "dimension", "sort", "open")
        chosen = {name: changes.get(name, getattr(self, name)) for name in names}
        return {name: value for name, value in chosen.items() if value}

    def shows(self, row: Row) -> bool:
        """Whether the filters leave this row."""
        return (not self.status or shown_status(row) == self.status) and (
            not self.dimension or row["dimension"] == self.dimension
        )

    def is_open(self, row: Row) -> bool:
        """Whether the details of this row are open."""
        return self.open in (EVERY_ROW, row["key"])

    def ordered(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows in the chosen order; without one, critical and worst first."""
        first = sorted(rows, key=priority)
        column = next((one for one in self.columns if one.key == self.sort.removeprefix("-")), PRIORITY)
        known = [row for row in first if column.value(row) is not None]
        unknown = [row for row in first if column.value(row) is None]
        return sorted(known, key=column.value, reverse=self.sort.startswith("-")) + unknown

    def direction(self, column: Column) -> str:
        """Return `aria-sort` of a column; '' if it does not sort."""
        if column.key != self.sort.removeprefix("-"):
            return ""
        if self.sort.startswith("-"):
            return "descending"
        return "ascending" if column.key else "other"

    def next_sort(self, column: Column) -> str:
        """Return what a click on the head of a column chooses: its own direction first, then the other."""
        up, down = column.key, f"-{column.key}"
        first, second = (down, up) if column.falls else (up, down)
        return second if self.sort == first else first


def _columns(judged: bool) -> tuple[Column, ...]:
    return COLUMNS if judged else COLUMNS_OF_RATERS


def shared_sentences(rows: Sequence[Row], *, least: int = 3) -> dict[str, list[Row]]:
    """Return the reasons and cautions that several criteria have, with the criteria, most frequent first."""
    holders: dict[str, list[Row]] = {}
    for row in rows:
        for sentence in dict.fromkeys((*row["reasons"], *row["cautions"])):
            holders.setdefault(sentence, []).append(row)
    shared = {sentence: found for sentence, found in holders.items() if len(found) >= least}
    return dict(sorted(shared.items(), key=lambda one: -len(one[1])))
