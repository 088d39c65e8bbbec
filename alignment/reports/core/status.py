"""The status of a criterion: a versioned policy, and its decision with reasons and cautions."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate

DIRECTIONAL = "directional only: reported, never blocks"
# How reasons begin that name what to do about labels.
NEEDS = "needs"
NOT_AGREED = "not enough agreed labels"
# What ends a disagreement between raters; adjudication leaves their labels as they are.
LABEL_AGAIN = "refine the guideline, then label these chats again"


class Status(StrEnum):
    """The status of one criterion."""

    ALIGNED = "aligned"
    NOT_ALIGNED = "not_aligned"
    NOT_ENOUGH_LABELS = "not_enough_labels"
    RATERS_DISAGREE = "raters_disagree"


@dataclass(frozen=True)
class StatusPolicy:
    """The limits; a changed limit needs a new version.

    minimum_true, minimum_false : compared chats that a status needs, by human answer.
    minimum_rate : smallest TPR and TNR, and smallest upper bound of the raters' own accuracy.
    minimum_rate_low : smallest lower bound of TPR and TNR.
    balanced_low_above : balanced accuracy's lower bound must be above this.
    largest_abstention, cautioned_abstention : largest share of the human True, and of the human False, on
        which the judge may abstain, and the share from which abstentions give a caution and count as wrong
        for `minimum_rate`; JSON calls them `largest_silent` and `cautioned_silent`.
    largest_unresolved, cautioned_unresolved : the same shares of the labelled chats that are unresolved.
    minimum_overlap : chats with two labels on which agreement between raters decides.
    minimum_agreement : raters disagree if alpha's and AC1's upper bounds are both below this.

    Raises
    ------
    ValueError : a limit is outside its range. The message names it.

    Examples
    --------
    >>> StatusPolicy().label
    'start values, version 3'
    """

    name: str = "start values"
    version: int = 3
    minimum_true: int = 30
    minimum_false: int = 30
    minimum_rate: float = 0.80
    minimum_rate_low: float = 0.65
    balanced_low_above: float = 0.50
    largest_abstention: float = 0.10
    cautioned_abstention: float = 0.02
    largest_unresolved: float = 0.20
    cautioned_unresolved: float = 0.05
    minimum_overlap: int = 30
    minimum_agreement: float = 0.40

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, float) and not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1")
        for name in ("minimum_true", "minimum_false", "minimum_overlap"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more")

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}, version {self.version}"

    def as_json(self) -> dict[str, Any]:
        """Return every parameter by its name in JSON."""
        return {name.replace("_abstention", "_silent"): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Abstentions:
    """Chats with one human answer and without True or False from the judge.

    chats : their number, for any reason.
    abstained : those on which the judge abstained; fewer while the run may still bring their verdicts.
    share : weighted share of abstentions among the chats with this human answer; None if not weighted.
    """

    chats: int = 0
    abstained: int = 0
    share: float | None = None


@dataclass(frozen=True)
class HumanLabels:
    """The human labels of a criterion, as far as they decide its status.

    labelled, unresolved : chats with a label that counts, and those of them that are unresolved.
    agreement : the criterion's `human` in JSON: agreement between raters with its intervals.
    """

    labelled: int
    unresolved: int
    agreement: Mapping[str, Any]

    @property
    def overlap(self) -> int:
        """Number of chats with two raters or more."""
        return int(self.agreement["overlap"])

    @property
    def unresolved_share(self) -> float:
        """Share of the labelled chats that are unresolved; 0 without labels."""
        return self.unresolved / self.labelled if self.labelled else 0.0

    def high(self, name: str) -> float | None:
        """Return the upper bound of an interval of `agreement`; None without one."""
        bounds = self.agreement[name]
        return None if bounds is None else bounds["high"]


NOTHING_OPEN = Abstentions()
Classes = tuple[tuple[str, int, Abstentions], ...]  # human answer, compared chats, chats not compared


@dataclass(frozen=True)
class Decision:
    """A status, its reasons and its cautions, one sentence each.

    The status is None if the policy does not apply.
    """

    status: Status | None
    reasons: tuple[str, ...]
    cautions: tuple[str, ...] = ()


def decide_status(
    *,
    table: Confusion,
    tpr: Estimate,
    tnr: Estimate,
    balanced_accuracy: Estimate,
    labels: HumanLabels,
    open_true: Abstentions = NOTHING_OPEN,
    open_false: Abstentions = NOTHING_OPEN,
    policy: StatusPolicy,
    tier: str,
) -> Decision:
    """Apply the policy to one criterion.

    Parameters
    ----------
    table : human answers against verdicts.
    tpr, tnr, balanced_accuracy : estimates with intervals, of that table or weighted.
    labels : counts of the human labels, and agreement between raters.
    open_true, open_false : chats with this human answer that are not in the table.
    policy : the limits.
    tier : "subjective" adds the reason "directional only"; the status stays.

    Returns
    -------
    Decision : raters_disagree is decided first. Then not_enough_labels, which also applies if too many chats
        are unresolved, or if TPR or TNR is undefined. Then not_aligned, with each missed limit as a reason;
        else aligned. Too many abstentions are a reason for every status but aligned.

    Examples
    --------
    >>> from alignment.statistics.intervals import mover_mean, proportion
    >>> tpr, tnr = proportion(60, 62, reason=""), proportion(11, 12, reason="")
    >>> decide_status(table=Confusion(60, 2, 1, 11), tpr=tpr, tnr=tnr, tier="simple",
    ...               balanced_accuracy=mover_mean(tpr, tnr), policy=StatusPolicy(),
    ...               labels=HumanLabels(74, 0, {"overlap": 0})).reasons
    ('needs 18 more human False labels (12 of 30)',)
    """
    classes = (("True", table.human_true, open_true), ("False", table.human_false, open_false))
    disagree = _disagreement(labels, policy)
    unknown = dict.fromkeys(rate.reason for rate in (tpr, tnr) if rate.value is None)
    missing = _missing_labels(classes, labels, policy) or list(unknown)
    abstained = _abstentions(classes, policy)
    missed = [] if missing or disagree else _missed_limits(tpr, tnr, balanced_accuracy, classes, policy)
    decided = Status.NOT_ALIGNED if missed or abstained else Status.ALIGNED
    status = Status.NOT_ENOUGH_LABELS if missing else decided
    directional = [DIRECTIONAL] if tier == "subjective" else []
    return Decision(
        Status.RATERS_DISAGREE if disagree else status,
        (*disagree, *missing, *missed, *abstained, *directional),
        (*_label_cautions(labels, policy), *_abstention_cautions(classes, policy)),
    )


def _disagreement(labels: HumanLabels, policy: StatusPolicy) -> list[str]:
    """Return why labels of these raters cannot measure a judge.

    Plain accuracy decides, because the balanced ceiling is about 0.50 if one answer is rare. Alpha is near 0
    then, but AC1 is high, so both must be low.
    """
    if labels.overlap < policy.minimum_overlap:
        return []
    reasons = []
    high = labels.high("accuracy_ceiling")
    if high is not None and high < policy.minimum_rate:
        limit = _comparison(high, policy.minimum_rate)
        reasons.append(f"raters disagree: the upper bound of their own accuracy {limit}")
    alpha, ac1 = labels.high("krippendorff_alpha"), labels.high("gwet_ac1_interval")
    if alpha is not None and ac1 is not None and max(alpha, ac1) < policy.minimum_agreement:
        limit = f"{policy.minimum_agreement:.2f}"
        reasons.append(f"raters disagree: the upper bounds of alpha and AC1 are both below {limit}")
    return reasons


def labels_problem(labels: HumanLabels, policy: StatusPolicy) -> str:
    """Return why these labels cannot measure a judge, whatever its verdicts; '' if they can.

    >>> labels_problem(HumanLabels(100, 30, {"overlap": 0}), StatusPolicy())
    'not enough agreed labels: 30 of 100 labelled chats are unresolved, adjudicate them'
    """
    if disagree := _disagreement(labels, policy):
        return disagree[0]
    if labels.unresolved_share > policy.largest_unresolved:
        return f"{NOT_AGREED}: {_unresolved(labels)}"
    return ""


def label_cautions(labels: HumanLabels, policy: StatusPolicy) -> tuple[str, ...]:
    """Return the cautions about these labels for a report without a status; none without labels.

    What would decide a status is a caution there: raters who disagree, and too many unresolved chats.

    >>> label_cautions(HumanLabels(100, 30, {"overlap": 0}), StatusPolicy())[0]
    'not enough agreed labels: 30 of 100 labelled chats are unresolved, adjudicate them'
    """
    if not labels.labelled:
        return ()
    many = labels.unresolved_share > policy.largest_unresolved
    unresolved = [f"{NOT_AGREED}: {_unresolved(labels)}"] if many else []
    return (*_disagreement(labels, policy), *unresolved, *_label_cautions(labels, policy))


def _missing_labels(classes: Classes, labels: HumanLabels, policy: StatusPolicy) -> list[str]:
    """Return what is missing: agreed labels, verdicts on labelled chats, labels by class.

    More labels of a class are not asked for where adjudication may bring all of them.
    """
    least = {"True": policy.minimum_true, "False": policy.minimum_false}
    few = [(word, n, other) for word, n, other in classes if n < least[word]]
    verdicts = [
        f"verdicts on {n} of {n + other.chats} chats with a human {word}: {least[word]} needed"
        for word, n, other in few
        if n + other.chats >= least[word]
    ]
    needed = [
        _needed(word, n + other.chats, other.chats, least[word])
        for word, n, other in few
        if n + other.chats < least[word]
    ]
    if labels.unresolved_share <= policy.largest_unresolved:
        return verdicts + needed
    more = sum(max(0, least[word] - n - other.chats) for word, n, other in few)
    agreed = f"{NOT_AGREED}: {_unresolved(labels)}"
    return [agreed, *verdicts, *(needed if more > labels.unresolved else [])]


def _needed(word: str, labelled: int, unjudged: int, least: int) -> str:
    verdicts = f", and verdicts on {unjudged} labelled chats" if unjudged else ""
    return f"{NEEDS} {least - labelled} more human {word} labels ({labelled} of {least}){verdicts}"


def _unresolved(labels: HumanLabels) -> str:
    return f"{labels.unresolved} of {labels.labelled} labelled chats are unresolved, adjudicate them"


def _label_cautions(labels: HumanLabels, policy: StatusPolicy) -> Iterator[str]:
    """Yield what the labels leave unknown, short of deciding the status."""
    if policy.cautioned_unresolved < labels.unresolved_share <= policy.largest_unresolved:
        yield _unresolved(labels)
    if labels.overlap < policy.minimum_overlap:
        needed = policy.minimum_overlap
        yield f"human agreement unknown: {labels.overlap} of {needed} needed chats have two labels"
    elif labels.agreement["percent_agreement"] == 1:
        yield (
            f"raters gave the same label on all {labels.overlap} chats with two labels: "
            "check that they label independently"
        )


def _share(compared: int, other: Abstentions) -> float:
    asked = compared + other.abstained
    return other.abstained / asked if other.share is None and asked else other.share or 0.0


def _shares(classes: Classes) -> Iterator[tuple[float, str]]:
    """Yield by class the share of abstentions, and a sentence on it."""
    for word, n, other in classes:
        asked, share = n + other.abstained, _share(n, other)
        weighted = "" if other.share is None else f", {share:.0%} when weighted"
        yield (
            share,
            f"the judge gave no True or False on {other.abstained} of {asked} chats with a human {word}"
            f"{weighted}",
        )


def _abstentions(classes: Classes, policy: StatusPolicy) -> list[str]:
    """Return a reason for each class with too many abstentions: a judge must not skip hard chats."""
    return [words for share, words in _shares(classes) if share > policy.largest_abstention]


def _abstention_cautions(classes: Classes, policy: StatusPolicy) -> list[str]:
    least, most = policy.cautioned_abstention, policy.largest_abstention
    return [words for share, words in _shares(classes) if least < share <= most]


def _missed_limits(
    tpr: Estimate, tnr: Estimate, balanced: Estimate, classes: Classes, policy: StatusPolicy
) -> list[str]:
    reasons = []
    for name, rate, (_, n, other) in zip(("TPR", "TNR"), (tpr, tnr), classes, strict=True):
        if rate.value is not None and rate.value < policy.minimum_rate:
            reasons.append(f"{name} {_comparison(rate.value, policy.minimum_rate)}")
        elif rate.value is not None:
            reasons += _with_abstentions(name, rate.value, n, other, policy)
        if rate.interval and rate.interval.low < policy.minimum_rate_low:
            reasons.append(f"{name}'s lower bound {_comparison(rate.interval.low, policy.minimum_rate_low)}")
    if balanced.interval and balanced.interval.low <= policy.balanced_low_above:
        low, limit = balanced.interval.low, policy.balanced_low_above
        reasons.append(f"balanced accuracy's lower bound {_comparison(low, limit, where='not above')}")
    return reasons


def _with_abstentions(
    name: str, rate: float, compared: int, other: Abstentions, policy: StatusPolicy
) -> Iterator[str]:
    """Yield a reason if the rate misses its limit once abstentions count as wrong.

    A judge that leaves out only wrong rows must not gain by it. Up to `cautioned_abstention` none count, and
    above `largest_abstention` they are a reason by themselves.
    """
    share = _share(compared, other)
    counted = round(rate * (1 - share), 12)  # 160 / 195 * (195 / 200) is 0.80
    if policy.cautioned_abstention < share <= policy.largest_abstention and counted < policy.minimum_rate:
        chats = f"{other.abstained} chat{'' if other.abstained == 1 else 's'}"
        limit = _comparison(counted, policy.minimum_rate)
        yield f"{name} {limit} with {chats} without True or False counted as wrong"


def _comparison(value: float, limit: float, *, where: str = "below") -> str:
    """Return two decimals, and a third if two would show the limit itself."""
    digits = 3 if f"{value:.2f}" == f"{limit:.2f}" else 2
    return f"{value:.{digits}f} is {where} {limit:.2f}"
