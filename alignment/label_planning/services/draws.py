"""Chats drawn for labelling become a chat set."""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from alignment.comparison.queries.random_samples import PART
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.queries.sampling_frame import has_moved
from alignment.label_planning.services.draw_preview import DrawPreview, DrawWish, PlannedDraw, draw_planned
from alignment.statistics.stratified_sampling import stratum_codes
from common.problems import InputProblem, shown
from labeling.chats.services.chat_sets import AT_ONCE, NAME_LIMIT
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import User
from labeling.people.services.audit import audit

TRIES = 3  # draws computed before it is told that others are quicker


@dataclass(frozen=True, slots=True)
class DrawnSet:
    """The set that was made; `again` where the same form had made it before."""

    chat_set: ChatSet
    again: bool = False


def draw_source(*, scope: Scope, by: User, token: str) -> str:
    """What makes two presses of one form one draw; '' without a token."""
    run = scope.run.pk if scope.run else None
    return hashlib.sha256(f"{run}:{by.pk}:{token}".encode()).hexdigest() if token else ""


def label_draw(wish: DrawWish, *, by: User) -> DrawnSet:
    """Draw the chats into a new set of kind sample, with strata and probabilities; one audit row.

    A second press of the same form finds the first one's set. Raises InputProblem where nothing can be drawn,
    or the name is taken; then nothing is written.
    The draw is computed first, and anew where others took its chats meanwhile: the database is held for the
    writing alone.
    """
    run = wish.scope.run
    if run is None or (source := run.chat_set_id) is None:
        raise InputProblem("chats are drawn from a run over a chat set")
    for _ in range(TRIES):
        if (before := _before(wish)) is not None:
            return before
        _check_name(wish.name)
        if (made := _stored(wish, draw_planned(wish, by=by), source, by)) is not None:
            return made
    raise InputProblem("others are drawing or labelling these chats just now: try again")


def _before(wish: DrawWish) -> DrawnSet | None:
    found = ChatSet.objects.filter(sampling__source=wish.source).first() if wish.source else None
    return None if found is None else DrawnSet(found, again=True)


def _check_name(given: str) -> None:
    name = given.strip()
    if not 0 < len(name) <= NAME_LIMIT:
        raise InputProblem(f"a name has 1 to {NAME_LIMIT} characters")
    if ChatSet.objects.filter(name=name).exists():
        raise InputProblem(f"there is a chat set {shown(name)} already")


@transaction.atomic
def _stored(wish: DrawWish, plan: PlannedDraw, source: int, by: User) -> DrawnSet | None:
    """The set, written; None where its chats are no longer there to be drawn."""
    # Two presses at once come one after the other, and so do two draws.
    rubric = ChatSet.objects.select_for_update(no_key=True, of=("self",)).get(pk=source).rubric_id
    if (before := _before(wish)) is not None:
        return before
    chats = [one.chat for one in plan.chats]
    if has_moved(wish.scope, criteria=wish.criteria, draws=plan.draws, chats=chats):
        return None
    _check_name(wish.name)
    chat_set = ChatSet.objects.create(
        name=wish.name.strip(),
        kind=ChatSet.Kind.SAMPLE,
        rubric_id=rubric,
        sampling=(how := _sampling(wish, plan.preview)),
        created_by=by,
    )
    ChatSetMember.objects.bulk_create(_members(chat_set, plan), batch_size=AT_ONCE)
    audit(
        actor=by,
        verb="chats drawn",
        obj=chat_set,
        name=chat_set.name,
        run=how["run"],
        criteria=[row.key for row in wish.criteria],
        chats=plan.preview.chats,
        judge_false=plan.preview.suspect,
        seed=wish.seed,
    )
    return DrawnSet(chat_set)


def _members(chat_set: ChatSet, plan: PlannedDraw) -> list[ChatSetMember]:
    return [
        ChatSetMember(
            chat_set=chat_set,
            chat_id=one.chat,
            position=position,
            split=plan.splits[one.chat],
            stratum=one.stratum,
            inclusion_probability=one.probability,
        )
        for position, one in enumerate(plan.chats, 1)
    ]


def _sampling(wish: DrawWish, preview: DrawPreview) -> dict[str, Any]:
    """How the set was drawn: what weighting its labels later needs. NB: no page of raters shows it."""
    codes, scope = stratum_codes(preview.shares, seed=wish.seed), wish.scope
    return {
        "run": scope.run.pk if scope.run else None,
        "run_split": scope.split,
        **{f"run_{name}": scope.as_json()[name] for name in PART},
        "criteria": [row.key for row in wish.criteria],
        "rule": wish.rule.value,
        "minimum": wish.minimum,
        "topics": list(wish.topics),
        "seed": wish.seed,
        "split": wish.split,
        "oversampled": preview.oversampled,
        "strata": [
            {
                "stratum": codes[share.stratum],
                "judge_false": share.stratum.suspect,
                "topic": share.stratum.topic,
                "size": share.stratum.size,
                "drawn": share.n,
                "probability": share.probability,
            }
            for share in preview.shares
        ],
        "source": wish.source,
    }
