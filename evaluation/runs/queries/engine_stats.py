"""Statistics of a run's engines: side taken, changes by reflection, noise, audits and quotes."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Count, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from evaluation.core.types import Votes
from evaluation.engines.core.advocate_checks import CHECKS as CONDUCT
from evaluation.engines.core.injection_detection import CHAT_FLAGS, SUSPECT
from evaluation.engines.core.roles import ADVOCATES, NEITHER
from evaluation.knowledge.core.retrieval import TRUE_WITHOUT_PASSAGE
from evaluation.models.runs import Run, Verdict
from evaluation.runs.core.noise import flip_rate

AUDITED = frozenset(("audited", "audit_contradicts"))
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
        """Return the share; None for n = 0."""
        return self.hits / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Debates:
    """Verdicts of a Judge, by side.

    Attributes
    ----------
    sided_with : by advocate, and `neither` where the criterion does not apply.
    first_won : the Judge sided with the brief it read first, by advocate.
    longer_won : it sided with the much longer brief.
    one_sided : one advocate gave no brief.
    advocates : by advocate, how often each check of `advocate_checks` found something.
    """

    n: int
    sided_with: dict[str, Share]
    first_won: dict[str, Share]
    longer_won: Share
    one_sided: Share
    advocates: dict[str, dict[str, Share]]

    @property
    def sides(self) -> list[tuple[str, Share]]:
        """Return the share of each advocate, with the advocate's short name in lower case."""
        return [(role.mark, self.sided_with[role.key]) for role in ADVOCATES]


@dataclass(frozen=True, slots=True)
class Reflections:
    """Verdicts read in both passes, by the first one; `without_reason` is out of the changed ones."""

    changed: Share
    by_first: dict[str, Share]
    without_reason: Share


@dataclass(frozen=True, slots=True)
class Samples:
    """Verdicts with several answers: how often they were not unanimous, and how often two answers differ."""

    split: Share
    flip_rate: float | None


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Parts that do not apply to the run's engines are None.

    `quotes`, `quotes_close`: verified and close quotes of the rationales, out of all quotes. `audited`:
    contradicted by the formatter, out of those it read again. `contradictory`: verdicts whose block gave two
    answers. `suspect_chats`: chats with an injection flag. `noted`: verdicts whose judge noted a message to
    it. `leaked`: verdicts that revealed the private code. `true_without_passage`: True verdicts for which no
    passage was found, out of all True ones.
    """

    verdicts: int
    debates: Debates | None
    reflections: Reflections | None
    samples: Samples | None
    quotes: Share
    quotes_close: Share
    audited: Share | None
    contradictory: Share
    suspect_chats: Share
    suspect_flags: dict[str, Share]
    noted: Share
    leaked: Share
    true_without_passage: Share

    def as_json(self) -> dict[str, Any]:
        """Return plain values; a share is {"hits", "n"}."""
        data = asdict(self)
        if debates := data["debates"]:
            data["debates"] = {"n": debates.pop("n"), **debates.pop("sided_with"), **debates}
        return data


@dataclass(frozen=True, slots=True)
class _Rows:
    """Equal verdicts, and their number."""

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

    def flagged(self, flag: str) -> Share:
        return self.share(lambda row: flag in row["flags"])


def run_engine_stats(run: Run, *, chats: QuerySet[Any, Any] | None = None) -> EngineStats:
    """Count a run's verdicts, or those on `chats` (a subquery of ids), in at most three queries."""
    verdicts = Verdict.objects.filter(run=run)
    if chats is not None:
        verdicts = verdicts.filter(chat__in=chats)
    counted = verdicts.values(*_GROUPED).annotate(
        n=Count("id"), quoted=Sum("quotes"), verified=Sum("quotes_verified"), close=Sum("quotes_close")
    )
    rows = _Rows(tuple(dict(row) for row in counted.order_by()))
    audited = rows.having(lambda row: not AUDITED.isdisjoint(row["flags"]))
    return EngineStats(
        verdicts=rows.count(),
        debates=_debates(rows.having(lambda row: row["sided_with"] != "")),
        reflections=_reflections(
            rows.having(lambda row: row["state"] == "read" and row["first_state"] == "read")
        ),
        samples=_samples(rows.having(lambda row: row["votes_true"] is not None)),
        quotes=Share(_sum(rows, "verified"), _sum(rows, "quoted")),
        quotes_close=Share(_sum(rows, "close"), _sum(rows, "quoted")),
        audited=audited.flagged("audit_contradicts") if audited.rows else None,
        contradictory=rows.where(contradicts=True),
        suspect_chats=_suspect_chats(verdicts, rows),
        suspect_flags={flag: rows.flagged(flag) for flag in CHAT_FLAGS},
        noted=rows.flagged("addresses_evaluation"),
        leaked=rows.flagged("canary_leaked"),
        true_without_passage=rows.among(value=True).flagged(TRUE_WITHOUT_PASSAGE),
    )


def _suspect_chats(verdicts: QuerySet[Verdict], rows: _Rows) -> Share:
    n = verdicts.values("chat").distinct().count()
    if not any(rows.flagged(flag).hits for flag in CHAT_FLAGS):
        return Share(0, n)
    # Flags are looked up as text: SQLite cannot search in JSON lists.
    flagged = verdicts.annotate(flags_text=Cast("flags", TextField())).filter(flags_text__contains=SUSPECT)
    return Share(flagged.values("chat").distinct().count(), n)


def _sum(rows: _Rows, name: str) -> int:
    return sum(row[name] for row in rows.rows)


def _debates(rows: _Rows) -> Debates | None:
    if not rows.rows:
        return None
    sides = [role.key for role in ADVOCATES]
    longer = rows.having(lambda row: any(f"{side}_longer" in row["flags"] for side in sides))
    return Debates(
        n=rows.count(),
        sided_with={side: rows.where(sided_with=side) for side in (*sides, NEITHER)},
        first_won={side: rows.among(first_brief=side).where(sided_with=side) for side in sides},
        longer_won=longer.share(lambda row: f"{row['sided_with']}_longer" in row["flags"]),
        one_sided=rows.flagged("one_sided"),
        advocates={side: {name: rows.flagged(f"{side}_{name}") for name in CONDUCT} for side in sides},
    )


def _reflections(rows: _Rows) -> Reflections | None:
    if not rows.rows:
        return None
    return Reflections(
        changed=rows.share(_changed),
        by_first={name: rows.among(first_value=value).share(_changed) for name, value in ANSWERS.items()},
        without_reason=rows.having(_changed).flagged("change_without_reason"),
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
