"""How likely draws for labelling were to take each chat of a report, as their strata say."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count, QuerySet
from numpy.typing import NDArray

from alignment.comparison.queries.scope import Scope
from evaluation.models.runs import RunChat, Verdict
from labeling.chats.core.allocation import AllocationRule
from labeling.models.chats import ChatSet
from labeling.models.labels import Label

# Chats whose chance is off the mean by more than this, and how many of them a random sample bears.
UNEVEN, BORNE = 0.25, 0.05

Sampling = Mapping[str, Any]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chances:
    """Of one criterion, by chat of the scope.

    Parameters
    ----------
    probability : to be drawn by one of the draws that had chats labelled on it; 0 for none.
    drawn : the chats so labelled.
    unequal : one of the draws took more of one verdict, or topics otherwise than by their size.
    whole : one draw alone, whose frame was every chat, all with about the same chance.
    """

    probability: Floats
    drawn: Flags
    unequal: bool
    whole: bool


def draw_chances(scope: Scope, *, chats: NDArray[np.int64], labels: QuerySet[Label]) -> dict[int, Chances]:
    """By criterion id, where a draw had chats labelled; at most six queries, one where nothing was drawn.

    Parameters
    ----------
    chats : ids of the scope's chats, in its order.
    labels : those that count.
    """
    draws = {pk: how for pk, how in _draws() if how}
    used = drawn_labels(labels, draws)
    if not used:
        return {}
    strata = _Strata.of(scope, chats, {pk: draws[pk] for one in used.values() for pk in one})
    return {criterion: strata.chances(by_draw) for criterion, by_draw in used.items()}


def drawn_by_verdict(labels: QuerySet[Label]) -> int:
    """How many chats have a label that an unequal draw chose; at most two queries."""
    found = drawn_labels(labels, {pk: how for pk, how in _draws() if how and _unequal(how)})
    return len({chat for by_draw in found.values() for some in by_draw.values() for chat in some})


def unequal_draws() -> list[int]:
    """Ids of the drawn sets that took more of one verdict, or topics otherwise than by size; one query."""
    return [pk for pk, how in _draws() if how and _unequal(how)]


def drawn_labels(labels: QuerySet[Label], draws: Mapping[int, Sampling]) -> dict[int, dict[int, set[int]]]:
    """By criterion and draw: the chats that the draw had labelled.

    A draw has its chats labelled on the criteria that it was for, which nobody had answered there, and on
    what else its jobs ask.
    """
    found: dict[int, dict[int, set[int]]] = {}
    if not draws:
        return found
    member = "chat__memberships__chat_set"
    rows = labels.filter(**{f"{member}__in": list(draws)}).order_by()
    asked = rows.values_list("criterion", "chat", member, "criterion__key", "assignment__job__chat_set")
    for criterion, chat, draw, key, job_set in asked:
        if job_set == draw or key in draws[draw]["criteria"]:
            found.setdefault(criterion, {}).setdefault(draw, set()).add(chat)
    return found


def _draws() -> QuerySet[ChatSet, tuple[int, Any]]:
    sets = ChatSet.objects.filter(kind=ChatSet.Kind.SAMPLE, sampling__run__isnull=False)
    return sets.order_by("pk").values_list("pk", "sampling")


def _unequal(how: Sampling) -> bool:
    return bool(how["oversampled"] or how["minimum"] or how["rule"] != AllocationRule.PROPORTIONAL)


@dataclass(frozen=True, slots=True)
class _Strata:
    """What is needed to place every chat of a scope in the strata of some draws."""

    chats: NDArray[np.int64]
    topics: list[str]
    draws: Mapping[int, Sampling]
    covered: Mapping[int, Collection[int]]  # by draw
    suspect: Mapping[int, Collection[int]]
    frames: Mapping[int, int]

    @classmethod
    def of(cls, scope: Scope, chats: NDArray[np.int64], draws: Mapping[int, Sampling]) -> "_Strata":
        """Four queries."""
        runs = {how["run"] for how in draws.values()}
        keys = {key for how in draws.values() for key in how["criteria"]}
        rows = RunChat.objects.filter(run__in=runs, chat__in=scope.chat_ids).order_by()
        places = list(rows.values_list("run", "split", "chat"))
        false = Verdict.objects.filter(run__in=runs, criterion__key__in=keys, value=False).order_by()
        said = list(false.values_list("run", "criterion__key", "chat"))
        sizes = RunChat.objects.filter(run__in=runs).order_by().values_list("run", "split")
        counts = list(sizes.annotate(n=Count("pk")))
        return cls(
            chats,
            list(scope.members.values_list("chat__topic__key", flat=True)),
            draws,
            {pk: {chat for run, split, chat in places if _of(how, run, split)} for pk, how in draws.items()},
            {
                pk: {chat for run, key, chat in said if run == how["run"] and key in how["criteria"]}
                for pk, how in draws.items()
            },
            {pk: sum(n for run, split, n in counts if _of(how, run, split)) for pk, how in draws.items()},
        )

    def chances(self, by_draw: Mapping[int, Collection[int]]) -> Chances:
        """Of one criterion, from the chats that each draw had labelled."""
        probability = 1 - np.prod([1 - self._probability(pk) for pk in by_draw], axis=0)
        drawn = np.isin(self.chats, list({chat for some in by_draw.values() for chat in some}))
        unequal = any(_unequal(self.draws[pk]) for pk in by_draw)
        whole = len(by_draw) == 1 and not unequal and all(self._took_all(pk) for pk in by_draw)
        return Chances(probability, drawn, unequal, whole and _even(probability))

    def _probability(self, draw: int) -> Floats:
        """Of each chat in this draw alone."""
        how, covered, suspect = self.draws[draw], self.covered[draw], self.suspect[draw]
        known = {(row["judge_false"], row["topic"]): row["probability"] for row in how["strata"]}
        return np.array(
            [
                known.get((chat in suspect, topic), 0.0) if chat in covered else 0.0
                for chat, topic in zip(self.chats.tolist(), self.topics, strict=True)
            ]
        )

    def _took_all(self, draw: int) -> bool:
        """Whether no chat of its run had been left out beforehand: labelled, asked for, or like another."""
        frame: int = sum(row["size"] for row in self.draws[draw]["strata"])
        return frame == self.frames[draw]


def _of(how: Sampling, run: int, split: str) -> bool:
    return bool(run == how["run"] and how["run_split"] in ("", split))


def _even(probability: Floats) -> bool:
    mean = probability.mean() if probability.size else 0.0
    off = np.abs(probability - mean) > UNEVEN * mean
    return bool(mean > 0 and off.mean() <= BORNE)
