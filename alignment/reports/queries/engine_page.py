"""The report's `engine` in words: which figures its page shows, in which order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SIDES = {"customer": "the customer critic", "support": "the support defender"}
ANSWERS = {"true": "True", "false": "False", "not_applicable": "not applicable"}
ADVOCATES = {"customer": "Critic", "support": "Defender"}
CONDUCT = {
    "unverified_quote": "brought a quote that is not in the chat",
    "no_message": "found no message for its side",
    "concedes": "conceded or spoke of the exercise",
    "gives_verdict": "gave a verdict",
    "wrong_side": "argued the other side's answer",
}
CHANGES_NOTE = "Of changes that people's answers decide, the share that went from wrong to right."


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table: `hits` of `n`, the share with its interval. `note` says what n counts."""

    name: str
    hits: int
    n: int
    share: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines under one heading."""

    name: str
    figures: tuple[Figure, ...]


def engine_parts(engine: Mapping[str, Any] | None) -> list[Part]:
    """What the page shows; parts without a line are left out, and so is everything without an engine."""
    if engine is None:
        return []
    right = engine["against_people"] or {}
    parts = [
        Part("Debate", _debate(engine["debates"], right.get("debate"))),
        Part("Reflection", _reflection(engine["reflections"], right.get("reflection"))),
        Part("Several answers", _samples(engine["samples"])),
        Part("Care", _care(engine)),
        Part("Chats that may be hostile", _suspect(engine, right.get("suspect"))),
    ]
    return [part for part in parts if part.figures]


def _figure(name: str, share: Mapping[str, Any], note: str = "") -> Figure:
    return Figure(name, share["hits"], share["n"], share, note)


def _debate(debates: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> tuple[Figure, ...]:
    if debates is None:
        return ()
    lines = [_figure(f"Judge sided with {who}", debates[side]) for side, who in SIDES.items()]
    lines.append(_figure("Against both: it does not apply", debates["neither"]))
    lines += [
        _figure(f"Sided with {who} when it came first", debates["first_won"][side])
        for side, who in SIDES.items()
    ]
    lines.append(_figure("Sided with the much longer brief", debates["longer_won"]))
    lines.append(_figure("One side brought no brief", debates["one_sided"]))
    if right:
        lines += [_right(f"Right when it sided with {who}", side, right) for side, who in SIDES.items()]
    lines += _conduct(debates)
    return tuple(line for line in lines if line.n)


def _right(name: str, side: str, right: Mapping[str, Any]) -> Figure:
    taken = right["taken"][side]
    return Figure(name, taken[side], sum(taken.values()), right["right"][side])


def _conduct(debates: Mapping[str, Any]) -> list[Figure]:
    """What an advocate did beside its duty, where it did."""
    return [
        _figure(f"{ADVOCATES[side]} {words}", found)
        for side, counted in debates["advocates"].items()
        for name, words in CONDUCT.items()
        if (found := counted[name])["hits"]
    ]


def _reflection(reflections: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> tuple[Figure, ...]:
    if reflections is None:
        return ()
    lines = [_figure("First verdict changed", reflections["changed"])]
    lines += [
        _figure(f"Changed when it was {words}", reflections["by_first"][name])
        for name, words in ANSWERS.items()
    ]
    lines.append(_figure("Changes without a reason that can be checked", reflections["without_reason"]))
    if right:
        fixed, broken = right["fixed"], right["broken"]
        lines.append(
            Figure("Changes that were right", fixed, fixed + broken, right["fixed_share"], CHANGES_NOTE)
        )
    return tuple(line for line in lines if line.n)


def _samples(samples: Mapping[str, Any] | None) -> tuple[Figure, ...]:
    return () if samples is None else (_figure("Answers not all the same", samples["split"]),)


def _care(engine: Mapping[str, Any]) -> tuple[Figure, ...]:
    lines = [_figure("Citations found in the message they name", engine["quotes"])]
    if engine["audited"]:
        lines.append(_figure("Prose that contradicts its verdict (audited)", engine["audited"]))
    return tuple(line for line in lines if line.n)


def _suspect(engine: Mapping[str, Any], right: Mapping[str, Any] | None) -> tuple[Figure, ...]:
    """Reported apart, and only where there is such a chat."""
    if not engine["suspect_chats"]["hits"]:
        return ()
    lines = [_figure("Chats flagged, kept and judged like any other", engine["suspect_chats"])]
    lines.append(_figure("Verdicts in which the judge noted such text", engine["noted"]))
    lines.append(_figure("Verdicts that gave away the private code", engine["leaked"]))
    for name, key in (("Right on these chats", "flagged"), ("Right on all others", "others")):
        if right and right[key]["n"]:
            found = right[key]
            lines.append(Figure(name, found["right"], found["n"], found["accuracy"]))
    return tuple(lines)
