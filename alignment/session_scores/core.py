"""Session scores: the share of applicable criteria that pass, over a chat."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import (
    Clusters,
    Codes,
    CriterionData,
    CriterionSpec,
    HumanCode,
    JudgeCode,
    ReportData,
)
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.paired_scores import mean_score, paired_scores

SUBJECTIVE = "subjective"
NO_RUN = "no run: human labels only"
NO_HUMAN_SCORE = "no chat with a human True or False on a counted criterion"
EACH_RATER = "choose the consensus or one rater as ground truth"
ESTIMATES = ("human", "judge", "difference", "correlation")
STEP, CELLS = 0.1, 11  # width of the cells of the plot, and their number in each direction
# Upper bounds of the bins of a distribution, exclusive, and their names; a score of 0 or 1 is its own bin.
BINS = ((0.5, "above 0, below 0.5"), (0.8, "0.5 to below 0.8"), (1.0, "0.8 to below 1"))

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SessionScore:
    """The score of one chat by one source: the judge, or the raters.

    Parameters
    ----------
    passed, applicable : criteria that pass, of those answered True or False.
    missing : counted criteria without an answer: no verdict, no label, or unresolved.
    critical_failed : whether a critical criterion fails.
    """

    passed: int
    applicable: int
    missing: int
    critical_failed: bool

    @property
    def value(self) -> float | None:
        """The score in [0, 1], 0 after a failed critical criterion; None if no criterion applies.

        >>> SessionScore(3, 4, 0, critical_failed=False).value
        0.75
        """
        if not self.applicable:
            return None
        return 0.0 if self.critical_failed else self.passed / self.applicable

    @property
    def partial(self) -> bool:
        """Whether there is a score, and answers are missing.

        >>> SessionScore(3, 4, 1, critical_failed=False).partial
        True
        """
        return bool(self.applicable and self.missing)


@dataclass(frozen=True)
class SessionScores:
    """The scores of many chats by one source; arrays as in `SessionScore`, shape (chats,)."""

    passed: Counts
    applicable: Counts
    missing: Counts
    critical_failed: Flags

    @property
    def values(self) -> Floats:
        """The scores in [0, 1], NaN where no criterion applies; shape (chats,)."""
        share = np.full(self.passed.size, np.nan)
        np.divide(self.passed, self.applicable, out=share, where=self.applicable > 0)
        share[self.critical_failed] = 0.0
        return share

    @property
    def scored(self) -> Flags:
        """Whether a chat has a score, shape (chats,)."""
        scored: Flags = self.applicable > 0
        return scored

    @property
    def partial(self) -> Flags:
        """Whether a chat has a score, and answers are missing; shape (chats,)."""
        partial: Flags = self.scored & (self.missing > 0)
        return partial

    def at(self, chat: int) -> SessionScore:
        """Return the score of one chat, by position."""
        return SessionScore(
            passed=int(self.passed[chat]),
            applicable=int(self.applicable[chat]),
            missing=int(self.missing[chat]),
            critical_failed=bool(self.critical_failed[chat]),
        )


def counts_in_score(spec: CriterionSpec, *, subjective: bool) -> bool:
    """Return whether a criterion counts in the session score; `subjective` is the workspace setting.

    >>> friendly = CriterionSpec("friendly", "compliance", "Compliance", "subjective", True)
    >>> counts_in_score(friendly, subjective=False)
    False
    """
    return subjective or spec.tier != SUBJECTIVE


def session_scores(
    codes: Codes, specs: Sequence[CriterionSpec], *, subjective: bool = False
) -> SessionScores:
    """Score chats by the answers of one source.

    Parameters
    ----------
    codes : HumanCode or JudgeCode by criterion and chat, shape (criteria, chats). Every code above *not
        applicable* is a missing answer.
    specs : the criteria, in the same order.
    subjective : whether criteria of the tier `subjective` count.

    Returns
    -------
    SessionScores : an answer passes if it is the criterion's passing answer. *Not applicable* does not count.

    Examples
    --------
    >>> polite = CriterionSpec("polite", "compliance", "Compliance", "simple", True)
    >>> leaked = CriterionSpec("leaked", "compliance", "Compliance", "simple", False, critical=True)
    >>> codes = np.array([[HumanCode.TRUE, HumanCode.FALSE], [HumanCode.FALSE, HumanCode.NA]])
    >>> session_scores(codes, [polite, leaked]).values.tolist()
    [1.0, 0.0]
    """
    counted = np.array([counts_in_score(spec, subjective=subjective) for spec in specs], dtype=bool)
    passes = np.array([HumanCode.TRUE if spec.passes_when else HumanCode.FALSE for spec in specs])
    critical = np.array([spec.critical for spec in specs], dtype=bool)
    codes, passes, critical = codes[counted], passes[counted, np.newaxis], critical[counted, np.newaxis]
    answered = codes <= HumanCode.FALSE  # the codes of True, False and not applicable are equal on both sides
    passed = codes == passes
    return SessionScores(
        passed=passed.sum(axis=0),
        applicable=answered.sum(axis=0),
        missing=(codes > HumanCode.NA).sum(axis=0),
        critical_failed=(answered & ~passed & critical).any(axis=0),
    )


def one_session_score(
    codes: Sequence[int], specs: Sequence[CriterionSpec], *, subjective: bool = False
) -> SessionScore:
    """Score a single chat; `codes` as in `session_scores`, one for each criterion.

    >>> polite = CriterionSpec("polite", "compliance", "Compliance", "simple", True)
    >>> one_session_score([HumanCode.UNRESOLVED], [polite]).value is None
    True
    """
    columns = np.array(codes, dtype=np.int8).reshape(len(specs), 1)
    return session_scores(columns, specs, subjective=subjective).at(0)


def score_agreement(data: ReportData, *, subjective: bool, seed: int) -> dict[str, Any]:
    """Compare the judge's session scores with the human ones: the report's `session_score`.

    Parameters
    ----------
    data : the report's data. Labels sampled by verdict are excluded.
    subjective : whether subjective criteria count.
    seed : seed of the bootstrap, which resamples chats, or clusters of chats.

    Returns
    -------
    dict : means and `difference` (judge minus human) over the `n` chats with both scores. Both count the
        criteria that both sides answered; `partial` chats lack an answer on some criterion. `correlation` is
        Pearson's, `rank_correlation` Spearman's. `pairs` counts chats by both scores, rounded to 0.1. Without
        a run only `human` has a value. Against each rater a chat has no single human score, so nothing has.
    """
    specs = [one.spec for one in data.criteria]
    counted = [spec for spec in specs if counts_in_score(spec, subjective=subjective)]
    body = _agreement(data, subjective=subjective, seed=seed)
    return body | {
        "subjective_counted": subjective,
        "criteria": len(counted),
        "criteria_left_out": [spec.key for spec in specs if spec not in counted],
    }


def _agreement(data: ReportData, *, subjective: bool, seed: int) -> dict[str, Any]:
    if data.each_rater:
        return _as_json({name: Estimate(None, reason=EACH_RATER) for name in ESTIMATES})
    if not data.has_run:
        human = human_scores(data, subjective=subjective)
        summary = score_summary(human, data.clusters, seed=seed, reason=NO_HUMAN_SCORE)
        missing = dict.fromkeys(ESTIMATES, Estimate(None, reason=NO_RUN))
        return _as_json(missing | {"human": summary.mean}, n=summary.n, partial=summary.partial)
    human, judge = _on_common_criteria(data, subjective=subjective)
    both = human.scored & judge.scored
    first, second = human.values[both], judge.values[both]
    clusters = None if data.clusters is None else data.clusters[both]
    found = paired_scores(first, second, clusters=clusters, seed=seed)
    estimates = (found.first, found.second, found.difference, found.correlation)
    return _as_json(
        dict(zip(ESTIMATES, estimates, strict=True)),
        rank_correlation=found.rank_correlation,
        n=int(both.sum()),
        partial=int((both & (human.partial | judge.partial)).sum()),
        pairs=_pairs(first, second),
    )


def _on_common_criteria(data: ReportData, *, subjective: bool) -> tuple[SessionScores, SessionScores]:
    """Return human and judge scores over the criteria that both answered on a chat.

    Else a chat that raters labelled on few criteria would differ without any disagreement.
    """
    specs = [one.spec for one in data.criteria]
    human, judge = _codes(data, _human), _codes(data, _judge)
    missing = (human > HumanCode.NA) | (judge > HumanCode.NA)
    human[missing], judge[missing] = HumanCode.UNLABELLED, JudgeCode.NONE
    return (
        session_scores(human, specs, subjective=subjective),
        session_scores(judge, specs, subjective=subjective),
    )


def _as_json(
    estimates: Mapping[str, Estimate],
    *,
    rank_correlation: float | None = None,
    n: int = 0,
    partial: int = 0,
    pairs: Sequence[Sequence[float]] = (),
) -> dict[str, Any]:
    reasons = undefined_reasons(dict(estimates))
    if rank_correlation is None:
        reasons["rank_correlation"] = estimates["correlation"].reason
    return {
        **{name: one.as_json() for name, one in estimates.items()},
        "rank_correlation": rank_correlation,
        "n": n,
        "partial": partial,
        "pairs": list(pairs),
        "undefined": reasons,
    }


def _human(one: CriterionData) -> Codes:
    return one.without_sampled.human


def _judge(one: CriterionData) -> Codes:
    assert one.judge is not None  # noqa: S101  a run's report
    return one.judge


def _codes(data: ReportData, source: Callable[[CriterionData], Codes]) -> Codes:
    """Codes of one source, shape (criteria, chats)."""
    codes = np.empty((len(data.criteria), len(data.chat_ids)), dtype=np.int8)
    for row, one in enumerate(data.criteria):
        codes[row] = source(one)
    return codes


def _pairs(first: Floats, second: Floats) -> list[list[float]]:
    """Chats by human and judge score, each rounded to the nearest cell: [human, judge, chats]."""
    cells = np.rint(first / STEP).astype(int) * CELLS + np.rint(second / STEP).astype(int)
    counts = np.bincount(cells)
    return [
        [round(cell // CELLS * STEP, 1), round(cell % CELLS * STEP, 1), n]
        for cell, n in enumerate(counts.tolist())
        if n
    ]


@dataclass(frozen=True)
class Bin:
    """A bin of a distribution of scores."""

    name: str
    chats: int


@dataclass(frozen=True)
class ScoreSummary:
    """The scores of one source over many chats.

    Parameters
    ----------
    mean : over the `n` chats with a score.
    partial : how many of them lack an answer.
    critical_failed : how many of them fail a critical criterion.
    bins : how many fall into each bin, lowest first.
    """

    mean: Estimate
    n: int
    partial: int
    critical_failed: int
    bins: tuple[Bin, ...]


def score_summary(scores: SessionScores, clusters: Clusters, *, seed: int, reason: str) -> ScoreSummary:
    """Summarize scores of chats.

    Parameters
    ----------
    scores, clusters : of the same chats; clusters as in `ReportData`.
    seed : of the bootstrap of the mean.
    reason : why the mean is undefined if no chat has a score.

    Examples
    --------
    >>> polite = CriterionSpec("polite", "compliance", "Compliance", "simple", True)
    >>> scores = session_scores(np.array([[HumanCode.TRUE, HumanCode.FALSE]]), [polite])
    >>> [one.chats for one in score_summary(scores, None, seed=1, reason="").bins]
    [1, 0, 0, 0, 1]
    """
    scored = scores.scored
    values = scores.values[scored]
    return ScoreSummary(
        mean=mean_score(
            values, clusters=None if clusters is None else clusters[scored], seed=seed, reason=reason
        ),
        n=int(scored.sum()),
        partial=int(scores.partial.sum()),
        critical_failed=int(scores.critical_failed.sum()),
        bins=_bins(values),
    )


def _bins(values: Floats) -> tuple[Bin, ...]:
    inner = np.digitize(values, [high for high, _ in BINS])
    below = [int(((inner == place) & (values > 0)).sum()) for place in range(len(BINS))]
    names = [name for _, name in BINS]
    zero, one = int((values == 0).sum()), int((values == 1).sum())
    return (Bin("0", zero), *(Bin(*pair) for pair in zip(names, below, strict=True)), Bin("1", one))


def human_scores(data: ReportData, *, subjective: bool) -> SessionScores:
    """Score the chats of a report by the human answers, without labels sampled by verdict."""
    return session_scores(_codes(data, _human), [one.spec for one in data.criteria], subjective=subjective)


def judge_scores(data: ReportData, *, subjective: bool) -> SessionScores:
    """Score the chats of a run's report by its verdicts."""
    return session_scores(_codes(data, _judge), [one.spec for one in data.criteria], subjective=subjective)
