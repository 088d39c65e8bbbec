"""Rows of the engine section of a report's page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.engines.core.roles import ADVOCATES, NEITHER, role_of

ANSWERS = {"true": "True", "false": "False", "not_applicable": "not applicable"}
ADVOCATE_CHECKS = {
    "unverified_quote": "quoted text that is not in the chat",
    "no_message": "found no message for its side",
    "concedes": "conceded or mentioned the exercise",
    "gives_verdict": "gave a verdict",
    "wrong_side": "argued the other side's answer",
}
CHANGES_NOTE = "Among changes between a right and a wrong verdict, the share that became right."


@dataclass(frozen=True, slots=True)
class Row:
    """A row: `hits` of `n`, and the share with its interval. `note` explains n."""

    name: str
    hits: int
    n: int
    share: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under one heading."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class BriefsRow:
    """What the briefs changed on one criterion, or on all; counts of chats."""

    name: str
    n: int
    mended: int
    broke: int
    still_right: int
    still_wrong: int


@dataclass(frozen=True, slots=True)
class BriefsTable:
    """The rows, the last one of all criteria, and the direct run that they are compared with."""

    direct_run: int
    rows: tuple[BriefsRow, ...]


def briefs_table(briefs: Mapping[str, Any] | None, names: Mapping[str, str]) -> BriefsTable | None:
    """Return the table of a report's `briefs`; None without it. `names` : of the criteria, by key."""
    if briefs is None:
        return None
    named = [(names[row["key"]], row) for row in briefs["criteria"]] + [("All", briefs["overall"])]
    rows = tuple(
        BriefsRow(name, *(row[count] for count in ("n", "mended", "broke", "still_right", "still_wrong")))
        for name, row in named
    )
    return BriefsTable(briefs["direct_run"], rows)


def engine_groups(engine: Mapping[str, Any] | None) -> list[Group]:
    """Return the groups that have rows; none without an engine."""
    if engine is None:
        return []
    right = engine["against_people"] or {}
    groups = [
        Group("Debate", _debate(engine["debates"], right.get("debate"))),
        Group("Reflection", _reflection(engine["reflections"], right.get("reflection"))),
        Group("Samples", _samples(engine["samples"])),
        Group("Quality checks", _quality_checks(engine)),
        Group("Suspect chats", _suspect(engine, right.get("suspect"))),
    ]
    return [group for group in groups if group.rows]


def _row(name: str, share: Mapping[str, Any], note: str = "") -> Row:
    return Row(name, share["hits"], share["n"], share, note)


def _debate(debates: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> tuple[Row, ...]:
    if debates is None:
        return ()
    # A stored report has the advocates of its time.
    sides = {role.key: f"the {role.name.lower()}" for role in ADVOCATES if role.key in debates}
    lines = [_row(f"Judge sided with {who}", debates[side]) for side, who in sides.items()]
    lines.append(_row("Sided with neither: not applicable", debates[NEITHER]))
    lines += [
        _row(f"Sided with {who} when it came first", debates["first_won"][side])
        for side, who in sides.items()
    ]
    lines.append(_row("Sided with the much longer brief", debates["longer_won"]))
    lines.append(_row("One side had no brief", debates["one_sided"]))
    if right:
        lines += [_right(f"Right when it sided with {who}", side, right) for side, who in sides.items()]
    lines += _advocate_checks(debates)
    return tuple(line for line in lines if line.n)


def _right(name: str, side: str, right: Mapping[str, Any]) -> Row:
    taken = right["taken"][side]
    return Row(name, taken[side], sum(taken.values()), right["right"][side])


def _advocate_checks(debates: Mapping[str, Any]) -> list[Row]:
    """Return the advocates' mistakes that occurred."""
    return [
        _row(f"{role_of(side).short_name} {words}", checks[name])
        for side, checks in debates["advocates"].items()
        for name, words in ADVOCATE_CHECKS.items()
        if checks[name]["hits"]
    ]


def _reflection(reflections: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> tuple[Row, ...]:
    if reflections is None:
        return ()
    lines = [_row("First verdict changed", reflections["changed"])]
    lines += [
        _row(f"Changed when it was {words}", reflections["by_first"][name]) for name, words in ANSWERS.items()
    ]
    lines.append(_row("Changes without a checkable reason", reflections["without_reason"]))
    if right:
        fixed, broken = right["fixed"], right["broken"]
        lines.append(
            Row("Changes that were right", fixed, fixed + broken, right["fixed_share"], CHANGES_NOTE)
        )
    return tuple(line for line in lines if line.n)


def _samples(samples: Mapping[str, Any] | None) -> tuple[Row, ...]:
    return () if samples is None else (_row("Questions with differing samples", samples["split"]),)


def _quality_checks(engine: Mapping[str, Any]) -> tuple[Row, ...]:
    lines = [_row("Quotes found in the cited message", engine["quotes"])]
    if (close := engine.get("quotes_close")) and close["hits"]:
        lines.append(_row("Quotes close to the cited message", close))
    if engine["audited"]:
        lines.append(_row("Rationales that contradict their verdict (audited)", engine["audited"]))
    silent = engine.get("true_without_passage")  # None in older stored reports
    if silent and silent["hits"]:
        lines.append(_row("True verdicts without a passage of the knowledge", silent))
    return tuple(line for line in lines if line.n)


def _suspect(engine: Mapping[str, Any], right: Mapping[str, Any] | None) -> tuple[Row, ...]:
    """Return the rows on suspect chats, if there are any."""
    if not engine["suspect_chats"]["hits"]:
        return ()
    lines = [_row("Flagged chats, judged like any other", engine["suspect_chats"])]
    lines.append(_row("Verdicts that mention suspect text", engine["noted"]))
    lines.append(_row("Verdicts that leaked the private code", engine["leaked"]))
    for name, key in (("Right on suspect chats", "flagged"), ("Right on other chats", "others")):
        if right and right[key]["n"]:
            chats = right[key]
            lines.append(Row(name, chats["right"], chats["n"], chats["accuracy"]))
    return tuple(lines)
