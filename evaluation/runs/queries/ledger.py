"""The calls and cost of a run: by engine, model and role, by criterion, and requests of unknown cost."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, Sum

from evaluation.models.runs import Attempt, Run, UnitCall
from evaluation.runs.queries.costs import PAID, RunCosts, run_costs


@dataclass(frozen=True, slots=True)
class Entry:
    """Sums over requests: `calls` of the run, `reused` answers that were stored or another unit's.

    `cost_usd` is None if the price of any answer is unknown; requests without an answer are not in it.
    """

    calls: int = 0
    reused: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)

    def plus(self, other: "Entry") -> "Entry":
        unknown = self.cost_usd is None or other.cost_usd is None
        return Entry(
            calls=self.calls + other.calls,
            reused=self.reused + other.reused,
            attempts=self.attempts + other.attempts,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=None if unknown else (self.cost_usd or Decimal(0)) + (other.cost_usd or Decimal(0)),
        )


@dataclass(frozen=True, slots=True)
class RoleSums:
    """The calls of one engine's role to one model."""

    engine: str
    model: str
    role: str
    sums: Entry


@dataclass(frozen=True, slots=True)
class CriterionRow:
    """A criterion's equal share of its group's cost; None if a price is unknown."""

    criterion: str
    together_with: int
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """A run's costs. `rows` add up to `total`, the criteria's shares to its cost; `costs` as everywhere."""

    rows: tuple[RoleSums, ...]
    criteria: tuple[CriterionRow, ...]
    total: Entry
    costs: RunCosts


def run_ledger(run: Run) -> Ledger:
    """Return the ledger of a run with its judge; four queries."""
    cells = _cells(run)
    engines = [str(group["engine"]) for group in run.judge.config.get("groups", [])]
    rows: dict[tuple[str, str, str], Entry] = defaultdict(Entry)
    groups: dict[int, Entry] = defaultdict(Entry)
    total = Entry()
    for (group, model, role), sums in cells.items():
        engine = engines[group] if 0 <= group < len(engines) else ""
        rows[engine, model, role] = rows[engine, model, role].plus(sums)
        groups[group] = groups[group].plus(sums)
        total = total.plus(sums)
    return Ledger(
        rows=tuple(RoleSums(*key, sums) for key, sums in sorted(rows.items())),
        criteria=tuple(_shares(run, groups)),
        total=total,
        costs=run_costs(run.pk),
    )


def _cells(run: Run) -> dict[tuple[int, str, str], Entry]:
    """Return sums by group of criteria, model and role."""
    cells = {
        _cell(row, "call__role"): Entry(
            calls=row["calls"],
            attempts=row["requests"],
            prompt_tokens=row["prompt"] or 0,
            cached_tokens=row["cached"] or 0,
            completion_tokens=row["completion"] or 0,
            cost_usd=None if row["unpriced"] else row["cost"] or Decimal(0),
        )
        for row in _attempt_sums(run)
    }
    for row in _use_sums(run):
        cell = _cell(row, "role")
        cells[cell] = replace(cells.get(cell, Entry()), reused=row["uses"] - row["first"])
    return cells


def _cell(row: Mapping[str, Any], role: str) -> tuple[int, str, str]:
    group = row["unit__group"]
    return -1 if group is None else group, row["call__model"], row[role]


def _attempt_sums(run: Run) -> Iterable[Mapping[str, Any]]:
    rows = Attempt.objects.filter(run=run).values("unit__group", "call__model", "call__role").order_by()
    return rows.annotate(
        calls=Count("call", distinct=True),
        requests=Count("id"),
        prompt=Sum("prompt_tokens"),
        completion=Sum("completion_tokens"),
        cached=Sum("call__cached_tokens", filter=Q(outcome__in=PAID)),
        cost=Sum("cost_usd"),
        unpriced=Count("id", filter=Q(outcome__in=PAID, cost_usd=None)),
    )


def _use_sums(run: Run) -> Iterable[Mapping[str, Any]]:
    """Return uses of answers, and the calls among them that this run sent itself: the rest is reuse."""
    sent_by_run = Exists(Attempt.objects.filter(run=run, call=OuterRef("call")))
    rows = UnitCall.objects.filter(unit__run=run).values("unit__group", "call__model", "role").order_by()
    return rows.annotate(uses=Count("id"), first=Count("call", filter=sent_by_run, distinct=True))


def _shares(run: Run, groups: dict[int, Entry]) -> Iterable[CriterionRow]:
    """Yield each criterion's share; criteria of one call share its cost."""
    members: dict[int, list[str]] = defaultdict(list)
    for group, key in run.judge.prompts.values_list("group", "criterion__key"):
        members[group].append(key)
    for group, keys in sorted(members.items()):
        cost = groups[group].cost_usd
        for key in keys:
            yield CriterionRow(key, len(keys) - 1, None if cost is None else cost / len(keys))
