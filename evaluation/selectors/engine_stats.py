"""What a run's engine did: whose side the Judge took, what reflection changed, how noisy and how careful."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Count, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from evaluation.core.hostile import CHAT_FLAGS
from evaluation.core.noise import flip_rate
from evaluation.core.types import Votes
from evaluation.models.runs import Run, Verdict

ADVOCATES = ("customer", "support")
CONDUCT = ("no_message", "unverified_quote", "concedes", "gives_verdict", "wrong_side", "longer")
ANSWERS: dict[str, bool | None] = {"true": True, "false": False, "not_applicable": None}
_GROUPED = (
    "state",
    "value",
    "first_state",
    "first_value",
    "sided_with",
    "first_brief",
    "contradicts",
    "flags",
    "votes_true",
    "votes_false",
    "votes_na",
)


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many."""

    hits: int
    n: int

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.hits / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Debates:
    """Verdicts of a Judge, by the case it followed; `neither`: it found that the criterion does not apply.

    `first_won`: sided with the brief it read first, by whose that was. `longer_won`: with the much longer
    one. `advocates` counts by side what they did beside their duty.
    """

    n: int
    customer: Share
    support: Share
    neither: Share
    first_won: dict[str, Share]
    longer_won: Share
    one_sided: Share
    advocates: dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Reflections:
    """Verdicts that were read in both passes, by the first one; `without_reason` of those changed."""

    changed: Share
    by_first: dict[str, Share]
    without_reason: Share


@dataclass(frozen=True, slots=True)
class Samples:
    """Verdicts with several answers: how often not all agreed, and how often two of them differ."""

    split: Share
    flip_rate: float | None


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Parts that a run's engines have nothing to say on are None.

    `quotes`: verified among all citations of the rationales. `audited`: contradicted by the formatter among
    those it read once more. `contradictory`: verdicts whose block gave two answers. `suspect_chats`: chats
    with a flag that they may be hostile; `noted`: verdicts whose judge said so; `leaked`: those that
    gave away the private code.
    """

    verdicts: int
    debates: Debates | None
    reflections: Reflections | None
    samples: Samples | None
    quotes: Share
    audited: Share | None
    contradictory: int
    suspect_chats: int
    suspect_flags: dict[str, int]
    noted: int
    leaked: int

    def as_json(self) -> dict[str, Any]:
        """Plain values; a share is {"hits", "n"}."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Verdicts that are alike, and how many."""

    rows: tuple[dict[str, Any], ...]

    def count(self, holds: Callable[[dict[str, Any]], bool] = lambda row: True) -> int:
        return sum(row["n"] for row in self.rows if holds(row))

    def having(self, holds: Callable[[dict[str, Any]], bool]) -> "_Rows":
        return _Rows(tuple(row for row in self.rows if holds(row)))

    def share(self, holds: Callable[[dict[str, Any]], bool]) -> Share:
        return Share(self.count(holds), self.count())

    def among(self, **values: Any) -> "_Rows":
        return self.having(lambda row: all(row[name] == value for name, value in values.items()))

    def where(self, **values: Any) -> Share:
        return Share(self.among(**values).count(), self.count())

    def flagged(self, *flags: str) -> int:
        return self.count(lambda row: any(flag in row["flags"] for flag in flags))


def run_engine_stats(run: Run) -> EngineStats:
    """Count a run's verdicts; two queries, however many there are."""
    verdicts = Verdict.objects.filter(run=run)
    counted = verdicts.values(*_GROUPED).annotate(
        n=Count("id"), quoted=Sum("quotes"), verified=Sum("quotes_verified")
    )
    rows = _Rows(tuple(dict(row) for row in counted.order_by()))
    audited = rows.flagged("audited", "audit_contradicts")
    return EngineStats(
        verdicts=rows.count(),
        debates=_debates(rows.having(lambda row: row["sided_with"] != "")),
        reflections=_reflections(
            rows.having(lambda row: row["state"] == "read" and row["first_state"] == "read")
        ),
        samples=_samples(rows.having(lambda row: row["votes_true"] is not None)),
        quotes=Share(_sum(rows, "verified"), _sum(rows, "quoted")),
        audited=Share(rows.flagged("audit_contradicts"), audited) if audited else None,
        contradictory=rows.count(lambda row: row["contradicts"]),
        suspect_chats=suspect(verdicts).values("chat").distinct().count(),
        suspect_flags={flag: n for flag in CHAT_FLAGS if (n := rows.flagged(flag))},
        noted=rows.flagged("addresses_evaluation"),
        leaked=rows.flagged("canary_leaked"),
    )


def suspect(verdicts: QuerySet[Verdict]) -> QuerySet[Verdict]:
    """Those of chats that may be hostile. Flags are looked up as text: SQLite cannot search in JSON lists."""
    return verdicts.annotate(flags_text=Cast("flags", TextField())).filter(flags_text__contains='"suspect_')


def _sum(rows: _Rows, name: str) -> int:
    return sum(row[name] for row in rows.rows)


def _debates(rows: _Rows) -> Debates | None:
    if not rows.rows:
        return None
    longer = rows.having(lambda row: any(f"{side}_longer" in row["flags"] for side in ADVOCATES))
    return Debates(
        n=rows.count(),
        customer=rows.where(sided_with="customer"),
        support=rows.where(sided_with="support"),
        neither=rows.where(sided_with="neither"),
        first_won={side: rows.among(first_brief=side).where(sided_with=side) for side in ADVOCATES},
        longer_won=longer.share(lambda row: f"{row['sided_with']}_longer" in row["flags"]),
        one_sided=rows.share(lambda row: "one_sided" in row["flags"]),
        advocates={side: {name: rows.flagged(f"{side}_{name}") for name in CONDUCT} for side in ADVOCATES},
    )


def _reflections(rows: _Rows) -> Reflections | None:
    if not rows.rows:
        return None
    return Reflections(
        changed=rows.share(_changed),
        by_first={name: rows.among(first_value=value).share(_changed) for name, value in ANSWERS.items()},
        without_reason=rows.having(_changed).share(lambda row: "change_without_reason" in row["flags"]),
    )


def _changed(row: dict[str, Any]) -> bool:
    return row["value"] is not row["first_value"]


def _samples(rows: _Rows) -> Samples | None:
    votes = [
        (Votes(row["votes_true"], row["votes_false"], row["votes_na"] or 0), row["n"]) for row in rows.rows
    ]
    rates = [(rate, n) for vote, n in votes if (rate := flip_rate(vote)) is not None]
    several = sum(n for _, n in rates)
    if not several:
        return None
    return Samples(
        split=Share(sum(n for rate, n in rates if rate > 0), several),
        flip_rate=_mean(rates),
    )


def _mean(weighted: Iterable[tuple[float, int]]) -> float:
    pairs = list(weighted)
    return sum(value * n for value, n in pairs) / sum(n for _, n in pairs)
