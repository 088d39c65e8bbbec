"""Create a chat set from sampled chats."""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from alignment.comparison.queries.random_samples import PART
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.queries.sampling_frame import frame_changed
from alignment.label_planning.services.sample_preview import (
    PlannedSample,
    SamplePreview,
    SampleRequest,
    plan_sample,
)
from alignment.statistics.stratified_sampling import stratum_codes
from common.problems import InputProblem, shown
from labeling.chats.services.chat_sets import AT_ONCE, NAME_LIMIT
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import User
from labeling.people.services.audit import audit

TRIES = 3  # attempts before the request is refused because chats keep changing


@dataclass(frozen=True, slots=True)
class CreatedSample:
    """The chat set of a sample; `again` if an earlier submission of the form created it."""

    chat_set: ChatSet
    again: bool = False


def sample_source(*, scope: Scope, by: User, token: str) -> str:
    """Return an id that is equal for repeated submissions of one form; '' without a token."""
    run = scope.run.pk if scope.run else None
    return hashlib.sha256(f"{run}:{by.pk}:{token}".encode()).hexdigest() if token else ""


def create_sample(wish: SampleRequest, *, by: User) -> CreatedSample:
    """Sample chats into a new set with strata and probabilities, and write one audit event.

    A second submission of the same form returns the first one's set. The sample is computed before the
    transaction, and again if its chats are no longer eligible, so that the lock is short.

    Raises InputProblem, with nothing written, if no chat is eligible or the name is in use.
    """
    run = wish.scope.run
    if run is None or (source := run.chat_set_id) is None:
        raise InputProblem("this run has no chat set: choose a run over a chat set")
    for _ in range(TRIES):
        if (earlier := _created_before(wish)) is not None:
            return earlier
        _check_name(wish.name)
        if (created := _create(wish, plan_sample(wish, by=by), source, by)) is not None:
            return created
    raise InputProblem("these chats are being sampled or labelled by others: try again")


def _created_before(wish: SampleRequest) -> CreatedSample | None:
    chat_set = ChatSet.objects.filter(sampling__source=wish.source).first() if wish.source else None
    return None if chat_set is None else CreatedSample(chat_set, again=True)


def _check_name(text: str) -> None:
    name = text.strip()
    if not 0 < len(name) <= NAME_LIMIT:
        raise InputProblem(f"the name needs 1 to {NAME_LIMIT} characters")
    if ChatSet.objects.filter(name=name).exists():
        raise InputProblem(f"a chat set {shown(name)} exists: choose another name")


@transaction.atomic
def _create(wish: SampleRequest, plan: PlannedSample, source: int, by: User) -> CreatedSample | None:
    """Write the set; None if one of its chats is no longer eligible."""
    # The row lock serialises simultaneous submissions and samples.
    rubric = ChatSet.objects.select_for_update(no_key=True, of=("self",)).get(pk=source).rubric_id
    if (earlier := _created_before(wish)) is not None:
        return earlier
    chats = [one.chat for one in plan.chats]
    if frame_changed(wish.scope, criteria=wish.criteria, samples=plan.earlier, chats=chats):
        return None
    _check_name(wish.name)
    chat_set = ChatSet.objects.create(
        name=wish.name.strip(),
        kind=ChatSet.Kind.SAMPLE,
        rubric_id=rubric,
        sampling=(sampling := _sampling(wish, plan.preview)),
        created_by=by,
    )
    ChatSetMember.objects.bulk_create(_members(chat_set, plan), batch_size=AT_ONCE)
    audit(
        actor=by,
        verb="chats drawn",
        obj=chat_set,
        name=chat_set.name,
        run=sampling["run"],
        criteria=[row.key for row in wish.criteria],
        chats=plan.preview.chats,
        judge_false=plan.preview.suspect,
        seed=wish.seed,
    )
    return CreatedSample(chat_set)


def _members(chat_set: ChatSet, plan: PlannedSample) -> list[ChatSetMember]:
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


def _sampling(wish: SampleRequest, preview: SamplePreview) -> dict[str, Any]:
    """Return the sampling record that later weights need. NB: rater pages never show it."""
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
