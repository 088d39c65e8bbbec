"""One criterion's entry in a report."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from alignment.comparison.core.codes import Clusters, CriterionData, HumanCode, JudgeCode, ReportData
from alignment.comparison.core.tally import Tally, tally
from alignment.reports.core.cautions import carried_caution, cautions, pass_rate_cautions
from alignment.reports.core.clustered import (
    ClusteredAnswers,
    clustered_corrected_rate,
    clustered_human_rate,
    clustered_judge_rate,
    clustered_statistics,
)
from alignment.reports.core.human_side import human_side
from alignment.reports.core.judge_side import (
    AVERAGED,
    MOST_FREQUENT,
    NAMES,
    PREVALENCE,
    averaged_statistics,
    judge_statistics,
)
from alignment.reports.core.missing_verdicts import pending_caution
from alignment.reports.core.pass_rates import (
    ALL_LABELLED,
    NEEDS_ONE_TRUTH,
    NO_ANSWER,
    Method,
    corrected_pass_rate,
    human_pass_rate,
    judge_pass_rate,
    method_of,
    passing,
)
from alignment.reports.core.pooled import NO_RUN
from alignment.reports.core.sensitivity import sensitivity
from alignment.reports.core.status import (
    DIRECTIONAL,
    Abstentions,
    Decision,
    StatusPolicy,
    decide_status,
    label_cautions,
)
from alignment.reports.core.used_answers import human_labels, sampled_by_verdict, used_answers
from alignment.reports.core.weighted import (
    abstention_share,
    human_share,
    weighted_statistics,
)
from alignment.statistics.estimates import Estimate, undefined_reasons

MANY_ANSWERS = "no single table: each chat has several human answers"
NO_STATUS = "no status against each rater: it needs one table with intervals"


@dataclass(frozen=True)
class _Input:
    """The answers and settings that a criterion's entry is computed from."""

    data: CriterionData
    tally: Tally
    each_rater: bool
    policy: StatusPolicy
    seed: int
    # Chats sampled by verdict whose labels no statistic uses: they represent no others.
    unused: int = 0
    clusters: Clusters = None

    @property
    def by_verdict(self) -> int:
        """Number of compared chats that were sampled by verdict."""
        return 0 if self.each_rater else sampled_by_verdict(self.data)

    @property
    def labels(self) -> int:
        """Number of labels of all raters."""
        return int(self.data.counts.sum())

    @property
    def method(self) -> Method | None:
        """The method that corrects the judge's pass rate."""
        if self.by_verdict:
            return Method.WEIGHTING
        return method_of(self.tally, at_random=self.data.at_random)


def criterion_entry(
    report: ReportData, data: CriterionData, *, policy: StatusPolicy, seed: int
) -> dict[str, Any]:
    """Return counts, judge statistics, human agreement, pass rates and status of one criterion.

    Parameters
    ----------
    report : names the ground truth.
    data : the criterion's answers.
    policy : the limits that decide the status.
    seed : seed of every bootstrap.
    """
    each, parts = report.each_rater, _input(report, data, policy=policy, seed=seed)
    data = parts.data
    judged = _judge_statistics(parts)
    raters = human_side(data.counts, raters=data.raters, seed=seed, clusters=report.clusters)
    rates = _pass_rates(parts, judged)
    corrected_by = _corrected_by(parts, rates["judge_corrected"])
    decision = _decision(parts, judged, raters.body)
    return {
        **_identity(data),
        **_counts(parts),
        **{name: judged[name].as_json() if name in judged else None for name in NAMES},
        "human": raters.body,
        "pass_rate": {name: _rate_json(rate) for name, rate in rates.items()},
        "status": decision.status.value if decision.status else None,
        "reasons": list(decision.reasons),
        "cautions": [*_cautions(parts, judged, corrected=corrected_by is not None), *decision.cautions],
        "carried": _carried(parts),
        "dropped_labels": data.dropped.as_json() if data.dropped else None,
        "drawn_by_verdict": parts.by_verdict,
        "corrected_by": corrected_by,
        "unjudged": _unjudged(parts),
        "without_verdict": parts.tally.without_verdict if parts.tally.has_run else None,
        "not_judged_yet": parts.tally.not_judged_yet if parts.tally.has_run else None,
        "sensitivity": sensitivity(data, weighted=parts.by_verdict > 0) if judged and not each else None,
        "prevalence": judged.get(PREVALENCE, _prevalence(parts)).value,
        MOST_FREQUENT: _most_frequent_accuracy(parts, judged),
        "policy": policy.label,
        "questions": data.questions.as_json(),
        "undefined": {
            **_missing_counts(parts),
            **undefined_reasons({name: judged[name] for name in NAMES if name in judged}),
            **raters.undefined,
            **undefined_reasons({f"pass_rate.{name}": rate for name, rate in rates.items() if rate}),
        },
    }


def _input(report: ReportData, data: CriterionData, *, policy: StatusPolicy, seed: int) -> _Input:
    """Return the answers that the statistics use: without sampled labels that represent no others."""
    each = report.each_rater
    used = used_answers(data, each_rater=each)
    return _Input(used.data, used.tally, each, policy, seed, unused=used.unused, clusters=report.clusters)


def _identity(data: CriterionData) -> dict[str, Any]:
    spec = data.spec
    return {
        "key": spec.key,
        "dimension": spec.dimension,
        "tier": spec.tier,
        "passes_when": spec.passes_when,
    }


def _counts(parts: _Input) -> dict[str, Any]:
    """Count every chat once. Without a run `n` counts human True and False, and verdict counts are None."""
    counts = parts.tally
    table = counts.table if counts.has_run else None
    return {
        "n": table.n if table else counts.answered,
        "human_true": _human_true(parts),
        "unlabelled": counts.human(HumanCode.UNLABELLED),
        "unresolved": counts.human(HumanCode.UNRESOLVED),
        "not_applicable": counts.human(HumanCode.NA),
        "no_verdict": sum(counts.no_verdict_by.values()) if table else None,
        "no_verdict_by": counts.no_verdict_by if table else None,
        "judge_not_applicable": counts.both_answered(JudgeCode.NA) if table else None,
        "confusion": asdict(table) if table and not parts.each_rater else None,
    }


def _unjudged(parts: _Input) -> dict[str, int] | None:
    counts = parts.tally
    if not counts.has_run or parts.each_rater:
        return None
    return {"true": counts.unjudged(HumanCode.TRUE), "false": counts.unjudged(HumanCode.FALSE)}


def _human_true(parts: _Input) -> int | None:
    if parts.each_rater:
        return None
    return parts.tally.table.human_true if parts.tally.has_run else parts.tally.human(HumanCode.TRUE)


def _missing_counts(parts: _Input) -> dict[str, str]:
    missing = dict.fromkeys(("human_true", "confusion", "unjudged"), MANY_ANSWERS) if parts.each_rater else {}
    return missing if parts.tally.has_run else {**missing, "judge": NO_RUN}


def _judge_statistics(parts: _Input) -> dict[str, Estimate]:
    if not parts.tally.has_run:
        return {}
    if parts.each_rater:
        return averaged_statistics(parts.data.rater_tables)
    if parts.by_verdict:
        return weighted_statistics(parts.data, parts.tally, seed=parts.seed)
    if parts.clusters is not None:
        assert parts.data.judge is not None  # noqa: S101  a run's report
        answers = ClusteredAnswers.of(parts.data.human, parts.data.judge, parts.clusters)
        return clustered_statistics(answers, parts.tally.table, seed=parts.seed)
    return judge_statistics(parts.tally.table, seed=parts.seed)


def _share_of_true_labels(parts: _Input) -> Estimate:
    """Return the share of True among single labels, used against each rater."""
    true, false, _ = parts.data.counts.sum(axis=0).tolist()
    if true + false == 0:
        return Estimate(None, reason=NO_ANSWER)
    return Estimate(true / (true + false), reason=AVERAGED)


def _prevalence(parts: _Input) -> Estimate:
    """Return the share of True among the human answers that `n` counts."""
    if parts.each_rater:
        return _share_of_true_labels(parts)
    n = parts.tally.table.n if parts.tally.has_run else parts.tally.answered
    return Estimate((_human_true(parts) or 0) / n) if n else Estimate(None, reason=NO_ANSWER)


def _most_frequent_accuracy(parts: _Input, judged: Mapping[str, Estimate]) -> float | None:
    """Return the accuracy of always giving the most frequent human answer, on the compared chats.

    Against each rater it is the best constant answer's accuracy, averaged over raters like the judge's.
    """
    if not judged:
        return None
    if not parts.each_rater:
        share = judged.get(PREVALENCE, _prevalence(parts)).value
    else:
        shares = [table.human_true / table.n for table in parts.data.rater_tables.values() if table.n]
        share = sum(shares) / len(shares) if shares else None
    return None if share is None else max(share, 1 - share)


def _pass_rates(parts: _Input, judged: Mapping[str, Estimate]) -> dict[str, Estimate | None]:
    good, clusters = parts.data.spec.passes_when, parts.clusters
    if parts.each_rater:
        human = passing(_share_of_true_labels(parts), passes_when=good)
    elif clusters is None:
        human = human_pass_rate(parts.tally, passes_when=good)
    else:
        human = clustered_human_rate(parts.data, clusters)
    if not parts.tally.has_run:
        return {"human": human, "judge": None, "judge_corrected": None}
    judge = (
        judge_pass_rate(parts.tally, passes_when=good)
        if clusters is None
        else clustered_judge_rate(parts.data, clusters)
    )
    if parts.by_verdict:
        # Weighted to all chats, the human rate is also the corrected one.
        human = passing(human_share(parts.data, seed=parts.seed), passes_when=good)
        return {"human": human, "judge": judge, "judge_corrected": human}
    return {"human": human, "judge": judge, "judge_corrected": _corrected(parts)}


def _corrected(parts: _Input) -> Estimate:
    if parts.each_rater:
        return Estimate(None, reason=NEEDS_ONE_TRUTH)
    if parts.clusters is not None:
        return clustered_corrected_rate(parts.data, parts.tally, parts.clusters, method=parts.method)
    good = parts.data.spec.passes_when
    return corrected_pass_rate(parts.tally, passes_when=good, method=parts.method)


def _corrected_by(parts: _Input, rate: Estimate | None) -> str | None:
    """Return the method of the corrected pass rate; None without one."""
    if rate is None or rate.value is None or parts.method is None:
        return None
    return parts.method.value


def _cautions(parts: _Input, judged: dict[str, Estimate], *, corrected: bool) -> list[str]:
    """Return the cautions; without a run or against each rater no single table has any."""
    carried = carried_caution(parts.data.carried, labels=parts.labels)
    of_labels = [carried] if carried else []
    if parts.data.dropped:
        of_labels.append(parts.data.dropped.words)
    if not judged:
        return of_labels
    pending = pending_caution(parts.tally.not_judged_yet, chats=parts.tally.chats)
    of_run = [pending] if pending else []
    if parts.each_rater:
        return [*of_run, *of_labels]
    kappa, balanced = judged["kappa"], judged["balanced_accuracy"]
    sampled = {"by_verdict": parts.by_verdict, "unused": parts.unused}
    of_table = cautions(parts.tally.table, kappa=kappa, balanced=balanced, **sampled)
    return [*of_run, *of_table, *of_labels, *pass_rate_cautions(parts.tally, corrected=corrected)]


def _carried(parts: _Input) -> dict[str, Any] | None:
    """Count the labels that carried over from other criteria."""
    carried = parts.data.carried
    if not carried:
        return None
    return {"labels": sum(carried.values()), "of": parts.labels, "from": list(carried)}


def _rate_json(rate: Estimate | None) -> dict[str, Any] | None:
    """Return None for a correction that is not needed; a failed one has an empty value and a reason."""
    return None if rate is None or rate.reason == ALL_LABELLED else rate.as_json()


def _abstention(parts: _Input, code: HumanCode) -> Abstentions:
    share = abstention_share(parts.data, code) if parts.by_verdict else None
    return Abstentions(parts.tally.unjudged(code), parts.tally.abstentions(code), share)


def _decision(parts: _Input, judged: dict[str, Estimate], agreement: Mapping[str, Any]) -> Decision:
    tier = parts.data.spec.tier
    directional = (DIRECTIONAL,) if tier == "subjective" else ()
    if not judged or parts.each_rater:
        # Against each rater the tally counts single labels; only the consensus has unresolved chats.
        of_consensus = tally(parts.data) if parts.each_rater else parts.tally
        about_labels = label_cautions(human_labels(of_consensus, agreement), parts.policy)
        return Decision(None, (NO_STATUS if judged else NO_RUN, *directional), about_labels)
    return decide_status(
        table=parts.tally.table,
        tpr=judged["tpr"],
        tnr=judged["tnr"],
        balanced_accuracy=judged["balanced_accuracy"],
        labels=human_labels(parts.tally, agreement),
        open_true=_abstention(parts, HumanCode.TRUE),
        open_false=_abstention(parts, HumanCode.FALSE),
        policy=parts.policy,
        tier=tier,
    )
