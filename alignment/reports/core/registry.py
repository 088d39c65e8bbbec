"""The statistics of a criterion row: their words, their format, and the tables that show them.

To add a statistic, add it here and to the formulas (`judge_side` and `weighted`, or `human_side`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Unit(StrEnum):
    """The unit of a value."""

    CHATS = "chats"
    RATERS = "raters"
    SHARE = "share"  # 0 to 1
    COEFFICIENT = "coefficient"  # -1 to 1


@dataclass(frozen=True)
class Statistic:
    """One value of a criterion row.

    Parameters
    ----------
    key : its path in the criterion's JSON, such as `tpr` or `human.ceiling`.
    label : its full name.
    head : its name in the head of a table.
    help : one line that explains it.
    anchor : its heading in docs/understand/statistics.md.
    unit : what the value counts or measures.
    undefined : why it has no value, if the report gives no reason.
    """

    key: str
    label: str
    head: str
    help: str
    anchor: str
    unit: Unit = Unit.SHARE
    undefined: str = ""

    @property
    def decimals(self) -> int:
        """Decimals of the value: none for a count."""
        return 0 if self.unit in (Unit.CHATS, Unit.RATERS) else 2

    @property
    def part(self) -> str:
        """The object of the row's JSON that holds it: `human`, `pass_rate`, or '' for the row itself."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Its key inside that object."""
        return self.key.rpartition(".")[2]

    def of(self, row: Mapping[str, Any]) -> Any:
        """Return its JSON in a criterion row: a number, an object with `value`, `low`, `high`, or None."""
        found: Any = row
        for name in self.key.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        if found is None or isinstance(found, Mapping):
            return found
        holder = row.get(self.part) if self.part else row
        # A plain number keeps its interval beside it.
        bounds = holder.get(f"{self.name}_interval") if isinstance(holder, Mapping) else None
        return {"value": found, **bounds} if bounds else found


_CHATS, _JUDGE, _RATERS, _PASSES = (
    "chats-per-criterion",
    "judge-against-consensus",
    "agreement-between-raters",
    "pass-rates",
)

# In the order of the JSON.
STATISTICS = (
    Statistic(
        "n",
        "Compared chats",
        "n",
        "Chats with True or False from both raters and judge",
        _CHATS,
        Unit.CHATS,
    ),
    Statistic(
        "human_true",
        "Human True",
        "Human True",
        "Compared chats with a human True",
        _JUDGE,
        Unit.CHATS,
    ),
    Statistic(
        "unlabelled",
        "Unlabelled",
        "Unlabelled",
        "Chats without a label that counts",
        _CHATS,
        Unit.CHATS,
    ),
    Statistic(
        "unresolved",
        "Unresolved",
        "Unresolved",
        "Chats without a majority and without an adjudication",
        _CHATS,
        Unit.CHATS,
    ),
    Statistic(
        "not_applicable",
        "Labelled not applicable",
        "Raters: not applicable",
        "Chats that the raters labelled not applicable",
        _CHATS,
        Unit.CHATS,
    ),
    Statistic(
        "no_verdict",
        "No verdict",
        "No verdict",
        "Chats with a human True or False and no readable answer from the judge",
        _CHATS,
        Unit.CHATS,
    ),
    Statistic(
        "judge_not_applicable",
        "Judged not applicable",
        "Judge: not applicable",
        "Chats with a human True or False that the judge found not applicable",
        _CHATS,
        Unit.CHATS,
    ),
    Statistic("accuracy", "Accuracy", "Accuracy", "Share of compared chats with the same answer", _JUDGE),
    Statistic(
        "balanced_accuracy",
        "Balanced accuracy",
        "Balanced",
        "Mean of TPR and TNR; 0.50 for a judge with a constant answer",
        _JUDGE,
    ),
    Statistic("tpr", "TPR", "TPR", "Share of human True that the judge also answers True", _JUDGE),
    Statistic("tnr", "TNR", "TNR", "Share of human False that the judge also answers False", _JUDGE),
    Statistic("precision", "Precision", "Precision", "Share of the judge’s True that are human True", _JUDGE),
    Statistic("f1", "F1", "F1", "Harmonic mean of precision and TPR", _JUDGE),
    Statistic(
        "mcc",
        "MCC",
        "MCC",
        "Matthews correlation of human answers and verdicts",
        _JUDGE,
        Unit.COEFFICIENT,
    ),
    Statistic(
        "kappa",
        "Cohen’s kappa",
        "κ",
        "Cohen’s kappa: agreement of judge and raters beyond chance",
        _JUDGE,
        Unit.COEFFICIENT,
    ),
    Statistic(
        "gwet_ac1",
        "Gwet’s AC1",
        "AC1",
        "Agreement of judge and raters beyond chance, stable if one answer is rare",
        _JUDGE,
        Unit.COEFFICIENT,
    ),
    Statistic(
        "pabak",
        "PABAK",
        "PABAK",
        "Kappa with equal shares assumed: twice the accuracy minus 1",
        _JUDGE,
        Unit.COEFFICIENT,
    ),
    Statistic("human.raters", "Raters", "Raters", "Raters with labels here", _RATERS, Unit.RATERS),
    Statistic(
        "human.overlap",
        "Chats with two raters or more",
        "Overlap",
        "Chats with two raters or more",
        _RATERS,
        Unit.CHATS,
    ),
    Statistic(
        "human.percent_agreement",
        "Percent agreement",
        "Agreement",
        "Share of rater pairs with the same label, averaged over chats",
        _RATERS,
    ),
    Statistic(
        "human.fleiss_kappa",
        "Fleiss’ kappa",
        "Fleiss’ κ",
        "Fleiss’ kappa: raters’ agreement beyond chance",
        _RATERS,
        Unit.COEFFICIENT,
    ),
    Statistic(
        "human.krippendorff_alpha",
        "Krippendorff’s alpha",
        "α",
        "Krippendorff’s alpha: raters’ agreement beyond chance, for any number of raters",
        _RATERS,
        Unit.COEFFICIENT,
    ),
    Statistic(
        "human.gwet_ac1",
        "Gwet’s AC1",
        "AC1",
        "Raters’ agreement beyond chance, stable if one answer is rare",
        _RATERS,
        Unit.COEFFICIENT,
    ),
    Statistic(
        "human.ceiling",
        "Human ceiling",
        "Ceiling",
        "Balanced accuracy of a rater against the majority of the other raters",
        _RATERS,
    ),
    Statistic(
        "human.accuracy_ceiling",
        "Human ceiling of accuracy",
        "Plain ceiling",
        "Accuracy of a rater against the majority of the other raters",
        _RATERS,
    ),
    Statistic(
        "pass_rate.human",
        "Human pass rate",
        "Human",
        "Share of labelled chats that pass",
        _PASSES,
    ),
    Statistic(
        "pass_rate.judge",
        "Judge pass rate",
        "Judge",
        "Share of judged chats that pass, uncorrected",
        _PASSES,
    ),
    Statistic(
        "pass_rate.judge_corrected",
        "Corrected pass rate",
        "Corrected",
        "Share of all chats that pass, corrected for the judge’s errors",
        _PASSES,
    ),
    Statistic(
        "prevalence",
        "Prevalence",
        "True",
        "Prevalence: share of compared chats with a human True",
        _JUDGE,
        undefined="No compared chat",
    ),
    Statistic(
        "most_frequent_accuracy",
        "Accuracy of the most frequent answer",
        "Most frequent",
        "Accuracy of always giving the most frequent human answer, for comparison with the judge’s",
        _JUDGE,
        undefined="No compared chat",
    ),
)
BY_KEY = {one.key: one for one in STATISTICS}


class Table(StrEnum):
    """A table of statistics, one row a criterion (in a criterion report: one row a statistic)."""

    DETAILS = "details"  # of a row of the report
    JUDGE = "judge"  # all statistics
    RATERS = "raters"
    RATES = "rates"  # how often the bot passes
    RATES_RATERS = "rates_raters"  # without a judge
    EXCLUDED = "excluded"
    EXCLUDED_RATERS = "excluded_raters"  # without a judge
    CRITERION_JUDGE = "criterion_judge"  # criterion report
    CRITERION_RATERS = "criterion_raters"
    STORED_JUDGE = "stored_judge"  # stored report: narrow enough for A4
    STORED_JUDGE_MORE = "stored_judge_more"
    REGRESSION = "regression"  # Markdown and JSON, of either judge
    REGRESSION_PAGE = "regression_page"
    TERMINAL_JUDGE = "terminal_judge"
    TERMINAL_RATERS = "terminal_raters"  # without a judge
    CSV_COUNTS = "csv_counts"
    CSV_JUDGE = "csv_judge"
    CSV_RATERS = "csv_raters"
    CSV_RATES = "csv_rates"


_JUDGE_ORDER = ("balanced_accuracy", "tpr", "tnr", "accuracy", "precision", "f1", "mcc", "kappa")
_RATERS_ORDER = ("human.percent_agreement", "human.krippendorff_alpha", "human.fleiss_kappa")
_CEILINGS = ("human.ceiling", "human.accuracy_ceiling")
JUDGE_RATES = ("tpr", "tnr", "balanced_accuracy")
# Always shown together: if nearly all chats are True, kappa is low and AC1 high.
_BEYOND_CHANCE = ("gwet_ac1", "kappa")
_NO_HUMAN_ANSWER = ("unlabelled", "unresolved", "not_applicable")
_PASS_RATES = ("pass_rate.human", "pass_rate.judge", "pass_rate.judge_corrected")

SHOWN: Mapping[Table, tuple[str, ...]] = {
    Table.DETAILS: ("prevalence", *_BEYOND_CHANCE),
    Table.JUDGE: (
        *("n", "balanced_accuracy", "human.ceiling", "tpr", "tnr", "accuracy", "most_frequent_accuracy"),
        *("precision", "f1", "mcc", "kappa", "gwet_ac1", "pabak", "prevalence"),
    ),
    Table.RATERS: ("human.raters", "human.overlap", *_RATERS_ORDER, "human.gwet_ac1", *_CEILINGS),
    Table.RATES: _PASS_RATES,
    Table.RATES_RATERS: _PASS_RATES[:1],
    Table.EXCLUDED: (*_NO_HUMAN_ANSWER, "no_verdict", "judge_not_applicable"),
    Table.EXCLUDED_RATERS: _NO_HUMAN_ANSWER,
    Table.CRITERION_JUDGE: (
        *("balanced_accuracy", "tpr", "tnr", *_BEYOND_CHANCE),
        *("accuracy", "most_frequent_accuracy", "precision", "f1", "mcc", "pabak"),
    ),
    Table.CRITERION_RATERS: (
        *(*_CEILINGS, "human.krippendorff_alpha", "human.gwet_ac1"),
        *("human.fleiss_kappa", "human.percent_agreement"),
    ),
    Table.STORED_JUDGE: ("n", "balanced_accuracy", "tpr", "tnr", "accuracy", "most_frequent_accuracy"),
    Table.STORED_JUDGE_MORE: ("prevalence", *_BEYOND_CHANCE, "precision", "f1", "mcc", "pabak"),
    Table.REGRESSION: (*JUDGE_RATES, *_BEYOND_CHANCE),
    # Accuracy first: the gate tests it.
    Table.REGRESSION_PAGE: ("accuracy", "balanced_accuracy", "tpr", "tnr", *_BEYOND_CHANCE),
    Table.TERMINAL_JUDGE: (
        *("n", "unresolved", "no_verdict", "prevalence"),
        *(*JUDGE_RATES, *_BEYOND_CHANCE, "human.ceiling"),
    ),
    Table.TERMINAL_RATERS: (
        *("n", "unresolved", "prevalence", "human.raters", "human.overlap", "human.percent_agreement"),
        *("human.krippendorff_alpha", "human.gwet_ac1", "human.ceiling"),
    ),
    Table.CSV_COUNTS: (*("n", "human_true", *_NO_HUMAN_ANSWER, "no_verdict", "judge_not_applicable"),),
    Table.CSV_JUDGE: (*_JUDGE_ORDER, "gwet_ac1", "pabak"),
    Table.CSV_RATERS: (*_RATERS_ORDER, "human.gwet_ac1", *_CEILINGS),
    Table.CSV_RATES: _PASS_RATES,
}


def columns(table: Table) -> tuple[Statistic, ...]:
    """Return the statistics of a table in its order.

    >>> [one.head for one in columns(Table.DETAILS)]
    ['True', 'AC1', 'κ']
    """
    return tuple(BY_KEY[key] for key in SHOWN[table])


def measures(part: str) -> tuple[str, ...]:
    """Return the keys inside one part of the JSON (see `Statistic.part`) in its order, counts excluded.

    >>> measures("pass_rate")
    ('human', 'judge', 'judge_corrected')
    """
    return tuple(one.name for one in STATISTICS if one.part == part and one.decimals)
