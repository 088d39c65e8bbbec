"""Session scores: the share of applicable criteria that pass, over a chat."""

from collections.abc import Callable, Sequence
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
    ReportData,
)
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.paired_scores import mean_score, paired_scores

SUBJECTIVE = "subjective"
NO_RUN = "no run: human labels only"
NO_HUMAN_SCORE = "no chat with a human True or False on a counted criterion"
EACH_RATER = "choose the consensus or one rater as ground truth"
STEP = 0.1  # width of the cells of the plot

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
    dict : means and `difference` (judge minus human) over the `n` chats with both scores, of which `partial`
        lack an answer on some criterion; `correlation` (Pearson) and `rank_correlation` (Spearman). `pairs`
        counts chats by both scores, rounded to 0.1. Without a run only `human` has a value. Against each
        rater a chat has no single human score, so nothing has.
    """
    specs = [one.spec for one in data.criteria]
    counted = [spec for spec in specs if counts_in_score(spec, subjective=subjective)]
    body = _agreement(data, specs, subjective=subjective, seed=seed)
    return body | {
        "subjective_counted": subjective,
        "criteria": len(counted),
        "criteria_left_out": [spec.key for spec in specs if spec not in counted],
    }


def _agreement(
    data: ReportData, specs: Sequence[CriterionSpec], *, subjective: bool, seed: int
) -> dict[str, Any]:
    if data.each_rater:
        return _nothing(EACH_RATER)
    human = session_scores(_codes(data, _human), specs, subjective=subjective)
    if not data.has_run:
        return _human_only(human, data.clusters, seed=seed)
    judge = session_scores(_codes(data, _judge), specs, subjective=subjective)
    both = human.scored & judge.scored
    first, second = human.values[both], judge.values[both]
    clusters = None if data.clusters is None else data.clusters[both]
    found = paired_scores(first, second, clusters=clusters, seed=seed)
    estimates = {
        "human": found.first,
        "judge": found.second,
        "difference": found.difference,
        "correlation": found.correlation,
    }
    return {
        **{name: one.as_json() for name, one in estimates.items()},
        "rank_correlation": found.rank_correlation,
        "n": int(both.sum()),
        "partial": int((both & (human.partial | judge.partial)).sum()),
        "pairs": _pairs(first, second),
        "undefined": undefined_reasons(estimates),
    }


def _nothing(reason: str) -> dict[str, Any]:
    estimates = {name: Estimate(None, reason=reason) for name in ("human", *_OF_JUDGE)}
    return {
        **{name: one.as_json() for name, one in estimates.items()},
        "rank_correlation": None,
        "n": 0,
        "partial": 0,
        "pairs": [],
        "undefined": undefined_reasons(estimates),
    }


_OF_JUDGE = ("judge", "difference", "correlation")


def _human_only(scores: SessionScores, clusters: Clusters, *, seed: int) -> dict[str, Any]:
    scored = scores.scored
    named = None if clusters is None else clusters[scored]
    human = mean_score(scores.values[scored], clusters=named, seed=seed, reason=NO_HUMAN_SCORE)
    nothing = _nothing(NO_RUN)
    reasons = dict.fromkeys(_OF_JUDGE, NO_RUN)
    return nothing | {
        "human": human.as_json(),
        "n": int(scored.sum()),
        "partial": int(scores.partial.sum()),
        "undefined": undefined_reasons({"human": human}) | reasons,
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
    cells = np.rint(np.stack([first, second], axis=1) / STEP).astype(int)
    distinct, chats = np.unique(cells, axis=0, return_counts=True)
    return [
        [round(human * STEP, 1), round(judge * STEP, 1), n]
        for (human, judge), n in zip(distinct.tolist(), chats.tolist(), strict=True)
    ]
