"""The body of a judge's certificate, and how today's judge and report differ from the certified ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from alignment.reports.core.status import DIRECTIONAL, Status

FORMAT = "lace-judge-certificate"
VERSION = 1
SPLITS = {
    "holdout": "on the holdout, which authors cannot see while they write prompts",
    "dev": "on dev, which is used to choose prompts: expect slightly lower values elsewhere",
    "train": "on train, the source of worked examples: expect lower values elsewhere",
    "": "on all splits, including those used to write prompts: expect lower values elsewhere",
}
OTHER_TEXT = "labels and judge answer different versions of the question"
TODAY = "in today's report"
DEFAULT = "the default profile"
# Parts of a configuration that only an upgrade of the workbench changes.
UPGRADES = {
    "templates": "an upgrade changed the fixed texts of the judge's prompts",
    "reader": "an upgrade changed how the judge's answers are read",
}
MODELS = ("model", "formatter", "endpoint")
RATES = ("tpr", "tnr", "balanced_accuracy")
# Why there is no verdict on a chat with a True or False consensus.
NO_VERDICT = ("unparsed", "refused", "cut_off", "too_long", "failed", "none")


class Use(StrEnum):
    """The permitted use of a judge on one criterion."""

    PRODUCTION = "production"
    DIRECTIONAL = "directional"
    NONE = "none"


def use_of(entry: Mapping[str, Any]) -> tuple[Use, list[str]]:
    """Return the use that a criterion's entry in a report permits, and the reasons against more.

    Examples
    --------
    >>> aligned = {"status": "aligned", "tier": "simple", "reasons": [], "questions": {"same": True}}
    >>> use_of(aligned)
    (<Use.PRODUCTION: 'production'>, [])
    >>> use_of(aligned | {"questions": {"same": False, "words": "labels answer version 1"}})[0]
    <Use.NONE: 'none'>
    """
    reasons = [reason for reason in entry["reasons"] if reason != DIRECTIONAL]
    if entry["questions"]["same"] is False:
        reasons.append(entry["questions"].get("words") or OTHER_TEXT)
    if entry["tier"] == "subjective":
        return Use.DIRECTIONAL, reasons
    may = entry["status"] == Status.ALIGNED and entry["questions"]["same"] is not False
    return (Use.PRODUCTION if may else Use.NONE), reasons


def qualifies(entry: Mapping[str, Any]) -> bool:
    """Return whether a report's entry on a criterion lets a certified judge score production."""
    return use_of(entry)[0] == Use.PRODUCTION


def certified(body: Mapping[str, Any]) -> list[str]:
    """Return the keys of the criteria on which a certificate lets the judge score production."""
    return [entry["key"] for entry in body["criteria"] if entry["use"] == Use.PRODUCTION]


@dataclass(frozen=True, slots=True)
class TodaysReport:
    """Today's report of a certified run.

    Parameters
    ----------
    criteria : its entries by key.
    labels_changed : whether its labels differ from those of the certified report.
    policy : the status policy in force, if the certified report followed another one; else ''.

    Examples
    --------
    >>> poor = {"tier": "simple", "questions": {"same": True}, "status": "not_aligned",
    ...         "reasons": ["TPR 0.10 is below 0.80"]}
    >>> today = TodaysReport({"polite": poor}, labels_changed=True, policy="")
    >>> today.lost({"criteria": [{"key": "polite", "use": "production"}]})
    ["polite: not aligned with today's labels: TPR 0.10 is below 0.80"]
    >>> today.note
    "labels changed since; today's report still qualifies"
    """

    criteria: Mapping[str, Mapping[str, Any]]
    labels_changed: bool
    policy: str

    def lost(self, body: Mapping[str, Any], *, figures: bool = True) -> list[str]:
        """Return the certified criteria that no longer qualify, each with the reason.

        Without `figures` a reason ends before the figures.
        """
        today = {key: self.criteria[key] for key in certified(body)}
        return [self._loss(key, one, figures=figures) for key, one in today.items() if not qualifies(one)]

    @property
    def note(self) -> str:
        """What changed if the report still qualifies; '' if neither labels nor policy did."""
        changes = ["labels changed"] if self.labels_changed else []
        changes += [f"status policy changed to “{self.policy}”"] if self.policy else []
        return f"{' and '.join(changes)} since; today's report still qualifies" if changes else ""

    def _loss(self, key: str, entry: Mapping[str, Any], *, figures: bool) -> str:
        aligned = entry["status"] == Status.ALIGNED
        words = "no longer qualifies" if aligned else entry["status"].replace("_", " ")
        causes = ["with today's labels"] if self.labels_changed else []
        causes += [f"under status policy “{self.policy}”"] if self.policy else []
        text = f"{key}: {words} {' '.join(causes or [TODAY])}"
        return f"{text}: {'; '.join(use_of(entry)[1])}" if figures else text


def digits(value: float | None) -> str | None:
    """Return a figure as text: programs write fractions differently, and a signature needs one spelling.

    Examples
    --------
    >>> digits(0.92857), digits(1), digits(None)
    ('0.9286', '1.0000', None)
    """
    return None if value is None else f"{value:.4f}"


def figures(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return counts and rates of a criterion's entry as whole numbers and texts."""
    table, without = entry["confusion"], entry["no_verdict_by"]
    asked = entry["n"] + entry["no_verdict"] + entry["judge_not_applicable"]
    return {
        "n": entry["n"],
        "people_true": entry["human_true"],
        "people_false": entry["n"] - entry["human_true"],
        "confusion": dict(table),
        **{name: _statistic(entry[name]) for name in RATES},
        "ceiling": _statistic(entry["human"]["ceiling"]),
        "raters": entry["human"]["raters"],
        "overlap": entry["human"]["overlap"],
        "unresolved": entry["unresolved"],
        "unlabelled": entry["unlabelled"],
        "no_verdict": {name: without[name] for name in NO_VERDICT if without.get(name)},
        "judge_not_applicable": entry["judge_not_applicable"],
        "unjudged": dict(entry["unjudged"]),
        "asked": asked,
        "unparsed_rate": digits(without.get("unparsed", 0) / asked) if asked else None,
        "refused_rate": digits(without.get("refused", 0) / asked) if asked else None,
    }


def differences(pinned: Mapping[str, Any], today: Mapping[str, Any], *, profile: str = DEFAULT) -> list[str]:
    """Return how today's configuration differs from a certified one, one line for each cause.

    Changed questions are checked elsewhere, because judges without a configuration have them, too.

    Parameters
    ----------
    pinned, today : configurations as judges are fingerprinted by, over the same criteria.
    profile : what to call the profile that makes today's.

    Examples
    --------
    >>> judge = {"model": "a", "groups": [{"engine": "direct", "criteria": [["polite", "q", "p", "simple"]]}],
    ...          "knowledge": {"mode": "none", "snapshot": ""}}
    >>> differences(judge, judge | {"model": "b"})
    ['the model of the default profile has changed: model']
    """
    models = [name for name in MODELS if pinned.get(name) != today.get(name)]
    causes = [f"the model of {profile} has changed: {', '.join(models)}"] if models else []
    causes += [cause for name, cause in UPGRADES.items() if pinned.get(name) != today.get(name)]
    causes += _texts(_entries(pinned), _entries(today))
    before, after = dict(pinned.get("knowledge", {})), dict(today.get("knowledge", {}))
    if before.pop("snapshot", "") != after.pop("snapshot", ""):
        causes.append("the judge's knowledge articles have changed")
    if before != after or (not models and _settings(pinned) != _settings(today)):
        causes.append(f"the settings of {profile} have changed")
    return causes


def _statistic(statistic: Any) -> dict[str, str | None] | None:
    if not isinstance(statistic, Mapping) or statistic.get("value") is None:
        return None
    return {name: digits(statistic.get(name)) for name in ("value", "low", "high")}


def _entries(config: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return by key: key, hash of the question, hash of the prompt with its examples, and tier."""
    return {entry[0]: entry for group in config.get("groups", ()) for entry in group["criteria"]}


def other_tier(key: str) -> str:
    """Return the cause that a criterion's tier has changed."""
    return f"{key}: its tier has changed"


def _texts(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> list[str]:
    causes = []
    for key in before.keys() & after.keys():
        old, new = before[key], after[key]
        if old[2] != new[2]:
            causes.append(f"{key}: another prompt has been released")
        if old[3:] != new[3:]:
            causes.append(other_tier(key))
    return sorted(causes)


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration without texts and articles, groups as engine and keys."""
    groups = [
        (group["engine"], [entry[0] for entry in group["criteria"]]) for group in config.get("groups", ())
    ]
    return {**config, "groups": groups, "knowledge": None} | dict.fromkeys(UPGRADES)
