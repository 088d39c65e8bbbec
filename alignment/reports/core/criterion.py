"""One criterion's entry in a report."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode, ReportData
from alignment.comparison.core.tally import Tally, tally
from alignment.reports.core.cautions import cautions, pass_rate_cautions
from alignment.reports.core.human_side import human_side
from alignment.reports.core.judge_side import AVERAGED, NAMES, averaged_statistics, judge_statistics
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
from alignment.reports.core.status import DIRECTIONAL, Decision, LeftOpen, StatusPolicy, decide_status
from alignment.reports.core.weighted import (
    PREVALENCE,
    people_share,
    represents,
    silent_share,
    weighted_statistics,
)
from alignment.statistics.estimates import Estimate, undefined_reasons

MANY_ANSWERS = "a chat has several human answers: no one table"
NO_STATUS = "no status against each rater: the policy needs one table with intervals"


@dataclass(frozen=True)
class _Parts:
    """What an entry is put together from."""

    data: CriterionData
    tally: Tally
    each_rater: bool
    policy: StatusPolicy
    seed: int
    # Chats drawn by verdict whose labels no figure counts: they stand for no others.
    set_aside: int = 0

    @property
    def drawn(self) -> int:
        """Of the chats with both answers, those that were drawn by verdict."""
        if self.data.inverse is None or self.data.judge is None or self.each_rater:
            return 0
        answered = (self.data.human <= HumanCode.FALSE) & (self.data.judge <= JudgeCode.FALSE)
        return int((answered & (self.data.inverse > 0)).sum())

    @property
    def method(self) -> Method | None:
        """How the judge's pass rate is corrected; of labels drawn by verdict some chats are unlabelled."""
        if self.drawn:
            return Method.WEIGHTING
        return method_of(self.tally, at_random=self.data.at_random)


def criterion_entry(
    report: ReportData, data: CriterionData, *, policy: StatusPolicy, seed: int
) -> dict[str, Any]:
    """Counts, judge statistics, human agreement, pass rates and status of one criterion.

    Parameters
    ----------
    report : for what the report is against.
    data : the criterion's answers.
    policy : decides the status.
    seed : of every bootstrap.
    """
    each = report.each_rater
    if not (data.human == HumanCode.UNLABELLED).any():
        data = replace(data, inverse=None)  # the labelled chats are all there are
    parts = _Parts(data, tally(data, each_rater=each), each, policy, seed)
    if parts.drawn and not represents(data):
        data = data.without_drawn
        parts = replace(parts, data=data, tally=tally(data), set_aside=parts.drawn)
    judged = _judge_statistics(parts)
    people = human_side(data.counts, raters=data.raters, seed=seed)
    rates = _pass_rates(parts, judged)
    corrected_by = _corrected_by(parts, rates["judge_corrected"])
    decision = _decision(parts, judged)
    return {
        **_identity(data),
        **_counts(parts),
        **{name: judged[name].as_json() if name in judged else None for name in NAMES},
        "human": people.body,
        "pass_rate": {name: _rate_json(rate) for name, rate in rates.items()},
        "status": decision.status.value if decision.status else None,
        "reasons": list(decision.reasons),
        "cautions": _cautions(parts, judged, corrected=corrected_by is not None),
        "drawn_by_verdict": parts.drawn,
        "corrected_by": corrected_by,
        "unjudged": _unjudged(parts),
        "prevalence": judged.get(PREVALENCE, _prevalence(parts)).value,
        "policy": policy.label,
        "questions": data.questions.as_json(),
        "undefined": {
            **_missing_counts(parts),
            **undefined_reasons({name: judged[name] for name in NAMES if name in judged}),
            **people.undefined,
            **undefined_reasons({f"pass_rate.{name}": rate for name, rate in rates.items() if rate}),
        },
    }


def _identity(data: CriterionData) -> dict[str, Any]:
    spec = data.spec
    return {
        "key": spec.key,
        "dimension": spec.dimension,
        "tier": spec.tier,
        "passes_when": spec.passes_when,
    }


def _counts(parts: _Parts) -> dict[str, Any]:
    """Every chat once; without a run `n` counts the chats people answered, and what needs one is null."""
    counts = parts.tally
    table = counts.table if counts.has_run else None
    return {
        "n": table.n if table else counts.answered,
        "human_true": _human_true(parts),
        "unlabelled": counts.people(HumanCode.UNLABELLED),
        "unresolved": counts.people(HumanCode.UNRESOLVED),
        "not_applicable": counts.people(HumanCode.NA),
        "no_verdict": sum(counts.no_verdict_by.values()) if table else None,
        "no_verdict_by": counts.no_verdict_by if table else None,
        "judge_not_applicable": counts.both_answered(JudgeCode.NA) if table else None,
        "confusion": asdict(table) if table and not parts.each_rater else None,
    }


def _unjudged(parts: _Parts) -> dict[str, int] | None:
    counts = parts.tally
    if not counts.has_run or parts.each_rater:
        return None
    return {"true": counts.unjudged(HumanCode.TRUE), "false": counts.unjudged(HumanCode.FALSE)}


def _human_true(parts: _Parts) -> int | None:
    if parts.each_rater:
        return None
    return parts.tally.table.human_true if parts.tally.has_run else parts.tally.people(HumanCode.TRUE)


def _missing_counts(parts: _Parts) -> dict[str, str]:
    missing = dict.fromkeys(("human_true", "confusion", "unjudged"), MANY_ANSWERS) if parts.each_rater else {}
    return missing if parts.tally.has_run else {**missing, "judge": NO_RUN}


def _judge_statistics(parts: _Parts) -> dict[str, Estimate]:
    if not parts.tally.has_run:
        return {}
    if parts.each_rater:
        return averaged_statistics(parts.data.rater_tables)
    if parts.drawn:
        return weighted_statistics(parts.data, parts.tally, seed=parts.seed)
    return judge_statistics(parts.tally.table, seed=parts.seed)


def _share_of_true_labels(parts: _Parts) -> Estimate:
    """Of every single True or False label: what stands for the consensus against each rater."""
    true, false, _ = parts.data.counts.sum(axis=0).tolist()
    if true + false == 0:
        return Estimate(None, reason=NO_ANSWER)
    return Estimate(true / (true + false), reason=AVERAGED)


def _prevalence(parts: _Parts) -> Estimate:
    """Share of True among the human answers that `n` counts."""
    if parts.each_rater:
        return _share_of_true_labels(parts)
    n = parts.tally.table.n if parts.tally.has_run else parts.tally.answered
    return Estimate((_human_true(parts) or 0) / n) if n else Estimate(None, reason=NO_ANSWER)


def _pass_rates(parts: _Parts, judged: Mapping[str, Estimate]) -> dict[str, Estimate | None]:
    good = parts.data.spec.passes_when
    people = (
        passing(_share_of_true_labels(parts), passes_when=good)
        if parts.each_rater
        else human_pass_rate(parts.tally, passes_when=good)
    )
    if not parts.tally.has_run:
        return {"human": people, "judge": None, "judge_corrected": None}
    judge = judge_pass_rate(parts.tally, passes_when=good)
    if parts.drawn:
        # Weighted to all chats, people's own rate is the corrected one.
        people = passing(people_share(parts.data, seed=parts.seed), passes_when=good)
        return {"human": people, "judge": judge, "judge_corrected": people}
    return {"human": people, "judge": judge, "judge_corrected": _corrected(parts)}


def _corrected(parts: _Parts) -> Estimate:
    if parts.each_rater:
        return Estimate(None, reason=NEEDS_ONE_TRUTH)
    good = parts.data.spec.passes_when
    return corrected_pass_rate(parts.tally, passes_when=good, method=parts.method)


def _corrected_by(parts: _Parts, rate: Estimate | None) -> str | None:
    """The method behind the corrected pass rate; null without one."""
    if rate is None or rate.value is None or parts.method is None:
        return None
    return parts.method.value


def _cautions(parts: _Parts, judged: dict[str, Estimate], *, corrected: bool) -> list[str]:
    """Nothing without one table: without a run, or against each rater."""
    if not judged or parts.each_rater:
        return []
    kappa, balanced = judged["kappa"], judged["balanced_accuracy"]
    about = {"drawn": parts.drawn, "set_aside": parts.set_aside}
    found = cautions(parts.tally.table, kappa=kappa, balanced=balanced, **about)
    return [*found, *pass_rate_cautions(parts.tally, corrected=corrected)]


def _rate_json(rate: Estimate | None) -> dict[str, Any] | None:
    """A corrected rate that does not apply is null as a whole; one that failed shows its empty value."""
    return None if rate is None or rate.reason == ALL_LABELLED else rate.as_json()


def _left_open(parts: _Parts, code: HumanCode) -> LeftOpen:
    share = silent_share(parts.data, code) if parts.drawn else None
    return LeftOpen(parts.tally.unjudged(code), parts.tally.silent(code), share)


def _decision(parts: _Parts, judged: dict[str, Estimate]) -> Decision:
    tier = parts.data.spec.tier
    directional = (DIRECTIONAL,) if tier == "subjective" else ()
    if not judged or parts.each_rater:
        return Decision(None, (NO_STATUS if judged else NO_RUN, *directional))
    return decide_status(
        table=parts.tally.table,
        tpr=judged["tpr"],
        tnr=judged["tnr"],
        balanced_accuracy=judged["balanced_accuracy"],
        open_true=_left_open(parts, HumanCode.TRUE),
        open_false=_left_open(parts, HumanCode.FALSE),
        policy=parts.policy,
        tier=tier,
    )
