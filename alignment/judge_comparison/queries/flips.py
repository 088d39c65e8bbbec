"""Run against run: the chats whose verdict flipped, by criterion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.urls import reverse

from alignment.comparison.queries.answers import covered_chats, human_codes_of, run_codes
from alignment.comparison.queries.cached_documents import cached_document, hash_of, pin_of
from alignment.comparison.queries.requested_scope import own_chats
from alignment.comparison.queries.scope import Scope
from alignment.judge_comparison.core.flips import FLIPPED, Flip, flips
from alignment.judge_comparison.queries.answers import VisibleScope
from alignment.models.reports import Report
from evaluation.models.runs import FINISHED, Run, Verdict
from evaluation.prompts.queries.versions import newest_versions
from evaluation.runs.queries.runs import id_of, run_list, runs_open_to
from labeling.models.chats import Chat
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown, sees_every_chat

BODY_VERSION = 1
OFFERED = 50  # newest runs in the list; the address may name any finished run of the set
# Kinds of flips in the address; '' is each change of a verdict.
KINDS: Mapping[str, tuple[Flip, ...]] = {"": FLIPPED, **{flip.value: (flip,) for flip in Flip}}


@dataclass(frozen=True, slots=True)
class FlipChoice:
    """Two finished runs over one set: the verdicts of `run` are compared with those of `before`.

    `before` : None if the set has no other finished run. `closed` : whether lists are closed to a user who
    has still to label chats of one of the runs.
    """

    run: Run
    before: Run | None
    offered: Sequence[Run]
    scope: VisibleScope
    closed: bool

    @property
    def hidden(self) -> int:
        """Number of chats of the run that the user cannot see; one query."""
        if self.scope.visible is None:
            return 0
        return self.run.run_chats.exclude(chat__in=self.scope.visible.values("pk")).count()


@dataclass(frozen=True, slots=True)
class FlipRow:
    """One criterion: the number of chats with both verdicts, and of chats by flip."""

    criterion: Criterion
    both: int
    counts: Mapping[Flip, int]

    @property
    def flipped(self) -> int:
        """Number of verdicts that changed."""
        return sum(self.counts[flip] for flip in FLIPPED)

    @property
    def changed(self) -> bool:
        """Whether any verdict changed, appeared or is missing now."""
        return any(self.counts.values())

    @property
    def cells(self) -> list[tuple[Flip, int]]:
        """Counts in the order of the page."""
        return [(flip, self.counts[flip]) for flip in Flip]


@dataclass(frozen=True, slots=True)
class FlippedChat:
    """A chat with its consensus and both verdicts; `url` is its page in the second run."""

    chat: Chat
    criterion: Criterion
    flip: Flip
    human: str
    before: Verdict | None
    after: Verdict | None
    passes_when: bool
    url: str


Place = tuple[Criterion, Flip, int]  # a chat's id


def flip_choice(run: Run, other: str, *, user: User | AnonymousUser) -> FlipChoice | None:
    """Read the other run; '' is the newest finished one before this. None if it is not of this set."""
    finished = runs_open_to(user).filter(chat_set=run.chat_set_id, state__in=FINISHED)
    rows = run_list(among=finished.exclude(chat_set=None)).exclude(pk=run.pk)
    offered = list(rows[:OFFERED])
    if other:
        before = rows.filter(pk=id_of(other) or 0).first()
        if before is None:
            return None
    else:
        before = next((one for one in offered if one.pk < run.pk), offered[0] if offered else None)
    visible = None if sees_every_chat(user=user) else chats_shown(user=user)
    scopes = [Scope(run.chat_set, one) for one in (run, before) if one]
    closed = any(own_chats(scope, user=user).closed for scope in scopes)
    return FlipChoice(run, before, offered, VisibleScope(run.chat_set, run, visible=visible), closed)


def flip_document(choice: FlipChoice) -> dict[str, Any]:
    """Return by criterion key the number of chats with both verdicts, and chat ids by flip; cached."""
    scope, before = choice.scope, choice.before
    assert before is not None  # noqa: S101  the caller has checked it
    state = pin_of(scope, Report.Kind.CELLS.value, "flips", BODY_VERSION)
    stored = cached_document(
        scope,
        kind=Report.Kind.CELLS,
        pin=hash_of([state, before.pk, before.finished_at]),
        body=lambda: _body(scope, before),
        options=["flips", before.pk, scope.visible is None],
    )
    body: dict[str, Any] = stored.body
    return body


def _body(scope: VisibleScope, before: Run) -> dict[str, Any]:
    chats = covered_chats(scope)
    human, first = human_codes_of(scope, chats), run_codes(before, scope, chats)
    second = run_codes(scope.run, scope, chats)
    found = {row.key: flips(human[row.pk], first[row.pk], second[row.pk]) for row in scope.criteria}
    return {
        key: {"both": one.both}
        | {flip.value: chats.ids[places].tolist() for flip, places in one.places.items()}
        for key, one in found.items()
    }


def flip_rows(document: Mapping[str, Any], scope: VisibleScope) -> list[FlipRow]:
    """Return the criteria that both runs judged, those with most broken chats first."""
    rows = [
        FlipRow(one, body["both"], {flip: len(body[flip.value]) for flip in Flip})
        for one in scope.criteria
        if (body := document[one.key])["both"] or any(body[flip.value] for flip in Flip)
    ]
    return sorted(rows, key=lambda row: (-row.counts[Flip.BROKEN], -row.flipped, row.criterion.name))


def flip_places(document: Mapping[str, Any], rows: Sequence[FlipRow], *, key: str, kind: str) -> list[Place]:
    """Return the chats of one kind of flip, of one criterion or of all, in the order of the rows."""
    return [
        (row.criterion, flip, chat)
        for row in rows
        if key in ("", row.criterion.key)
        for flip in KINDS[kind]
        for chat in document[row.criterion.key][flip.value]
    ]


def flipped_chats(choice: FlipChoice, places: Sequence[Place]) -> list[FlippedChat]:
    """Return what one page of the list shows; five queries."""
    ids, criteria = {chat for _, _, chat in places}, {one for one, _, _ in places}
    chats = Chat.objects.select_related("topic").defer("messages").in_bulk(ids)
    versions = newest_versions(criteria=criteria)
    about = {"chat__in": ids, "criterion__in": criteria}
    states = Consensus.objects.filter(**about).values_list("chat_id", "criterion_id", "state")
    human = {(chat, criterion): state for chat, criterion, state in states}
    rows: QuerySet[Verdict] = Verdict.objects.filter(run__in=[choice.run, choice.before], **about)
    verdicts = {(row.run_id, row.chat_id, row.criterion_id): row for row in rows}
    page = {pk: reverse("alignment:chat", args=[choice.run.pk, pk]) for pk in ids}
    return [
        FlippedChat(
            chat=chats[pk],
            criterion=criterion,
            flip=flip,
            human=human.get((pk, criterion.pk), "none"),
            before=verdicts.get((choice.before.pk if choice.before else 0, pk, criterion.pk)),
            after=verdicts.get((choice.run.pk, pk, criterion.pk)),
            passes_when=versions[criterion.pk].passes_when,
            url=f"{page[pk]}?criterion={criterion.key}",
        )
        for criterion, flip, pk in places
    ]
