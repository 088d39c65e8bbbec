"""The random audit of judged samples: labelled chats as counts, and the rates that they correct."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import NamedTuple, TypeVar

import numpy as np

from alignment.monitoring.core.corrected_rates import (
    Method,
    ProductionRates,
    Rate,
    lang_reiczigel_rate,
    ppi_rate,
    uncorrected_rate,
)
from alignment.monitoring.core.two_phase import AuditLabels
from alignment.monitoring.core.weighted_rates import Reason, StratumSums, WeightedRate
from alignment.statistics.agreement import Confusion

SHARED_FLAG = "assumes that the judge errs as on all curated chats"


class AuditGroup(NamedTuple):
    """Judged chats of a run, day and topic; the labelled ones are a random part of each `suspect` group."""

    run: int
    day: date
    topic: int
    suspect: bool
    judged: int


class AuditCell(NamedTuple):
    """Labelled chats with these answers: a and y as in `StratumSums`, by the raters and by the judge."""

    run: int
    day: date
    topic: int
    experiment: str
    variant: str
    suspect: bool
    human_answers: float
    human_passes: float
    judge_answers: float
    judge_passes: float
    chats: int


Counted = TypeVar("Counted", AuditGroup, AuditCell)


def by_run(rows: Iterable[Counted]) -> dict[int, list[Counted]]:
    """Return groups or labelled chats by run."""
    found: dict[int, list[Counted]] = defaultdict(list)
    for row in rows:
        found[row.run].append(row)
    return dict(found)


class JudgedStratum(NamedTuple):
    """A run's judged chats of a day and topic. With a domain, such as one topic, a = y = 0 outside it."""

    run: int
    day: date
    topic: int
    sums: StratumSums


@dataclass(frozen=True)
class PartAudit:
    """The audit of a criterion, dimension or score, by run."""

    groups: Mapping[int, Sequence[AuditGroup]] = field(default_factory=dict)
    cells: Mapping[int, Sequence[AuditCell]] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Iterable[AuditGroup], cells: Iterable[AuditCell]) -> "PartAudit":
        """Return the audit of these groups and labelled chats."""
        return cls(by_run(groups), by_run(cells))

    def labels(
        self, strata: Sequence[JudgedStratum], *, inside: Callable[[AuditCell], bool] | None = None
    ) -> AuditLabels | None:
        """Return the labelled chats of a frame; None without any.

        Parameters
        ----------
        strata : of the frame. Judged chats of a run without an audit are a group without labels.
        inside : the domain: other labelled chats count with a = y = 0.
        """
        keys = {(one.run, one.day, one.topic): one.sums for one in strata if one.sums.sampled}
        runs = {run for run, _, _ in keys}
        cells = [one for run in runs for one in self.cells.get(run, ()) if one[:3] in keys and one.chats]
        if not cells:
            return None
        numbers, sizes = self._groups(keys, cells)
        chats = np.array([one.chats for one in cells])
        counted = [inside is None or inside(one) for one in cells]
        columns = np.array(
            [one[6:10] if is_in else (0.0,) * 4 for one, is_in in zip(cells, counted, strict=True)]
        )
        human_a, human_y, judge_a, judge_y = np.repeat(columns, chats, axis=0).T
        weights = [keys[one[:3]].size / keys[one[:3]].sampled for one in cells]
        return AuditLabels(
            weights=np.repeat(np.array(weights), chats),
            groups=np.repeat(np.array([numbers[one.run, one.suspect] for one in cells]), chats),
            group_sizes=np.array(sizes),
            human_answers=human_a,
            human_passes=human_y,
            judge_answers=judge_a,
            judge_passes=judge_y,
        )

    def labelled(self, runs: Iterable[int], inside: Callable[[AuditCell], bool]) -> int:
        """Return how many chats of a domain have a label that applies, in these runs."""
        return sum(
            one.chats
            for run in set(runs)
            for one in self.cells.get(run, ())
            if one.human_answers and inside(one)
        )

    def _groups(
        self, keys: dict[tuple[int, date, int], StratumSums], cells: Iterable[AuditCell]
    ) -> tuple[dict[tuple[int, bool], int], list[int]]:
        """Number the groups of the frame: each night's, by `suspect`; then what no audit covers."""
        judged: dict[tuple[int, bool], int] = defaultdict(int)
        covered: dict[int, int] = defaultdict(int)
        sampled: dict[int, int] = defaultdict(int)
        for (run, _, _), sums in keys.items():
            sampled[run] += sums.sampled
        for run in sampled:
            for group in self.groups.get(run, ()):
                if group[:3] in keys:
                    judged[run, group.suspect] += group.judged
                    covered[run] += group.judged
        for one in cells:
            judged[one.run, one.suspect] += 0
        rest = sum(max(0, n - covered[run]) for run, n in sampled.items())
        numbers = {key: number for number, key in enumerate(judged)}
        return numbers, [*judged.values(), rest]


def part_rates(
    judged: WeightedRate,
    strata: Sequence[JudgedStratum],
    *,
    curated: Confusion | Reason | None,
    audit: PartAudit | None,
    inside: Callable[[AuditCell], bool] | None = None,
    shared: bool = False,
    few: int = 0,
    alone: bool = True,
) -> ProductionRates:
    """Estimate a rate by every method.

    Parameters
    ----------
    judged : the judge's weighted rate.
    strata : of the whole frame, also where the rate is that of a domain (`inside`).
    curated : labels against verdicts with the passing answer as True, or why they correct nothing.
    shared : the curated labels are not those of the domain alone.
    alone : whether the rate of the audit's labels alone is wanted.
    few : labels of a domain, if they are too few; `strata` may then be empty.
    """
    if isinstance(curated, Reason):
        by_curated = Rate.missing(Method.LANG_REICZIGEL, curated)
    else:
        by_curated = lang_reiczigel_rate(judged, curated)
        if shared and by_curated.reason is None:
            estimate = by_curated.estimate
            flag = "; ".join(filter(None, (estimate.flag, SHARED_FLAG)))
            by_curated = replace(by_curated, estimate=replace(estimate, flag=flag))
    labels = None if audit is None else audit.labels(strata, inside=inside)
    sums = [one.sums for one in strata if one.sums.sampled]

    def by_audit(method: Method, weight: float | None) -> Rate:
        if few or labels is None:
            return Rate.missing(method, Reason.TOO_FEW_LABELS if few else Reason.NO_LABELS, labels=few)
        return ppi_rate(sums, labels, weight=weight, judged=judged)

    return ProductionRates(
        uncorrected=uncorrected_rate(judged),
        labels=by_audit(Method.LABELS, 0.0) if alone else None,
        lang_reiczigel=by_curated,
        ppi=by_audit(Method.PPI, None),
    )


def of_topic(topic: int) -> Callable[[AuditCell], bool]:
    """The domain of a topic."""
    return lambda cell: cell.topic == topic


def of_variant(experiment: str, variant: str) -> Callable[[AuditCell], bool]:
    """The domain of an experiment's variant."""
    return lambda cell: (cell.experiment, cell.variant) == (experiment, variant)


def zeroed(strata: Iterable[JudgedStratum], *, topic: int) -> list[JudgedStratum]:
    """Return the strata of a frame with a = y = 0 outside a topic."""
    return [
        one
        if one.topic == topic
        else one._replace(sums=StratumSums(one.sums.size, one.sums.sampled, 0, 0, 0, 0, 0))
        for one in strata
    ]
