"""Lists of chats: a cell of the matrix, chats without True or False from the judge, disagreements."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse
from numpy.typing import NDArray

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode, ReportData
from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.cached_documents import cached_document, pin_of
from alignment.comparison.queries.requested_scope import OwnChats, own_chats
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core import Pair, disagreement_places
from evaluation.models.runs import RunChat, Verdict
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown, sees_every_chat

CELL_CODES = {
    "tp": (HumanCode.TRUE, JudgeCode.TRUE),
    "fn": (HumanCode.TRUE, JudgeCode.FALSE),
    "fp": (HumanCode.FALSE, JudgeCode.TRUE),
    "tn": (HumanCode.FALSE, JudgeCode.FALSE),
}
# By human answer: no True or False from the judge, for any reason.
OPEN_CODES = {"open_true": HumanCode.TRUE, "open_false": HumanCode.FALSE}
NAMES = [*CELL_CODES, *OPEN_CODES]
DIFFER, AGREE = ("fn", "fp"), ("tp", "tn")
DISAGREEMENTS = "disagreements"  # both cells of a criterion in which judge and raters differ
BODY_VERSION = 2
EXCERPT = 160

Cell = tuple[str, str]  # a chat's external id, a criterion's key
# By criterion key and cell: the ids of the run's chats, in order.
Cells = Mapping[str, Mapping[str, list[int]]]


@dataclass(frozen=True, slots=True)
class PairRow:
    """One chat and criterion in a list; `state` is that of the verdict, "none" without one.

    `passes_when` is the answer that is good for the chatbot.
    """

    chat_id: str
    title: str
    topic: str
    split: str
    excerpt: str
    criterion: str
    human: bool
    judge: bool | None
    state: str
    passes_when: bool
    url: str


@dataclass(frozen=True, slots=True)
class Places:
    """The listed answers that a user may see, in the order of set and rubric, and the number of hidden ones.

    Parameters
    ----------
    keys : keys of the criteria.
    rows : shape (answers, 3): the id of the run's chat (`RunChat`), the positions of criterion and cell.
    hidden : number of answers on chats that the user may not see. 0 for a user with own chats left to label,
        who only learns the number of these chats.
    own : the user's own chats that remain to label.
    """

    keys: list[str]
    rows: NDArray[np.int64]
    hidden: int
    own: OwnChats

    def pairs(self, rows: Iterable[NDArray[np.int64]]) -> list[Pair]:
        """Return the human answer and the verdict at these places; one query."""
        places = [row.tolist() for row in rows]
        chats = RunChat.objects.filter(pk__in=[member for member, *_ in places])
        names = dict(chats.values_list("pk", "chat__external_id"))
        return [
            Pair(names[member], self.keys[criterion], *_answers(NAMES[cell]))
            for member, criterion, cell in places
        ]

    def position(self, member: int) -> int | None:
        """Return the position of a run's chat in the list, from 1; None if it is not listed."""
        found = np.flatnonzero(self.rows[:, 0] == member)
        return int(found[0]) + 1 if found.size else None

    def around(self, member: int) -> tuple[int | None, int | None]:
        """Return the ids of the run's chats listed before and after one."""
        members = self.rows[:, 0]
        before, after = members[members < member], members[members > member]
        return (int(before[-1]) if before.size else None, int(after[0]) if after.size else None)


def cell_places(scope: Scope, key: str, cell: str, user: User | AnonymousUser) -> Places:
    """List the chats of one cell of a criterion's matrix, or of both where judge and raters differ."""
    scope = replace(scope, only=key)
    return _shown(scope, cached_cells(scope), DIFFER if cell == DISAGREEMENTS else (cell,), user)


def no_verdict_places(scope: Scope, key: str, user: User | AnonymousUser) -> Places:
    """List the chats with a human True or False on a criterion and without a verdict; two queries."""
    scope = replace(scope, only=key)
    places = _shown(scope, cached_cells(scope), OPEN_CODES, user)
    read = Verdict.objects.filter(run=scope.run, criterion__key=key, state=Verdict.State.READ)
    not_applicable = RunChat.objects.filter(run=scope.run, chat__in=read.filter(value=None).values("chat"))
    answered = np.fromiter(not_applicable.order_by().values_list("pk", flat=True), dtype=np.int64)
    return replace(places, rows=places.rows[~np.isin(places.rows[:, 0], answered)], hidden=0)


def disagreements(
    scope: Scope,
    user: User | AnonymousUser,
    *,
    name: str = "",
    among: Callable[[], Container[Cell]] | None = None,
) -> Places:
    """List the disagreements of a run.

    `among` narrows the list to some of them. Its result must depend on the run and the answers only; it is
    cached under `name`.
    """
    return _shown(scope, cached_cells(scope, name, among), DIFFER, user)


def cached_cells(scope: Scope, name: str = "", among: Callable[[], Container[Cell]] | None = None) -> Cells:
    """Return the cells, computed once for the same answers; during a run they are computed each time."""

    def body() -> dict[str, Any]:
        return _cells(scope, report_data(scope), among() if among else None)

    if scope.run is None or scope.run.finished_at is None:
        return body()
    pin = pin_of(scope, Report.Kind.CELLS.value, BODY_VERSION, scope.only, name)
    cells: Cells = cached_document(scope, kind=Report.Kind.CELLS, pin=pin, body=body, options=[name]).body
    return cells


def _cells(scope: Scope, data: ReportData, among: Container[Cell] | None) -> dict[str, Any]:
    """Return the disagreements. For a single criterion with one human answer per chat, all cells."""
    places = disagreement_places(data)
    if among is not None:
        keys = [one.spec.key for one in data.criteria]
        inside = [(data.chat_ids[chat], keys[criterion]) in among for chat, criterion in places.tolist()]
        places = places[np.array(inside, dtype=np.bool_)]
    others = (*AGREE, *OPEN_CODES) if scope.only and not data.each_rater and among is None else ()
    members = np.fromiter(scope.members.values_list("pk", flat=True).iterator(), dtype=np.int64)
    cells: dict[str, Any] = {}
    for number, one in enumerate(data.criteria):
        if one.judge is not None:
            differ = places[places[:, 1] == number, 0]
            chats = {cell: differ[one.judge[differ] == CELL_CODES[cell][1]] for cell in DIFFER}
            chats |= {cell: _in_cell(one, cell) for cell in others}
            cells[one.spec.key] = {cell: members[some].tolist() for cell, some in chats.items()}
    return cells


def _in_cell(one: CriterionData, cell: str) -> NDArray[np.intp]:
    assert one.judge is not None  # noqa: S101  a run's report
    if cell in OPEN_CODES:
        return np.flatnonzero((one.human == OPEN_CODES[cell]) & (one.judge > JudgeCode.FALSE))
    human, judge = CELL_CODES[cell]
    return np.flatnonzero((one.human == human) & (one.judge == judge))


def _shown(scope: Scope, cells: Cells, names: Iterable[str], user: User | AnonymousUser) -> Places:
    """Return what a list shows the user: visible chats only, and none while lists are closed to them."""
    keys = [row.key for row in scope.criteria]
    rows, own = _in_order(cells, keys, names), own_chats(scope, user=user)
    shown = rows
    if own.closed:
        shown = rows[:0]
    elif not sees_every_chat(user=user):
        allowed = scope.members.filter(chat__in=chats_shown(user=user).values("pk")).order_by()
        ids = np.fromiter(allowed.values_list("pk", flat=True).iterator(), dtype=np.int64)
        shown = rows[np.isin(rows[:, 0], ids)]
    return Places(keys, shown, hidden=0 if own.chats else len(rows) - len(shown), own=own)


def _in_order(cells: Cells, keys: Sequence[str], names: Iterable[str]) -> NDArray[np.int64]:
    """Return the rows of `Places`."""
    parts = [np.empty((0, 3), dtype=np.int64)]
    for place, key in enumerate(keys):
        for name in names:
            members = np.array(cells.get(key, {}).get(name, []), dtype=np.int64)
            about = np.full((len(members), 2), [place, NAMES.index(name)])
            parts.append(np.column_stack([members, about]))
    rows = np.concatenate(parts)
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


def _answers(cell: str) -> tuple[bool, bool | None]:
    """Return the human answer and the verdict of a cell."""
    if cell in OPEN_CODES:
        return OPEN_CODES[cell] == HumanCode.TRUE, None
    human, judge = CELL_CODES[cell]
    return human == HumanCode.TRUE, judge == JudgeCode.TRUE


def listed(external_ids: list[str], scope: Scope, user: User | AnonymousUser) -> list[str]:
    """Return the chats that a list shows the user: visible ones only, none while lists are closed to them."""
    return [] if own_chats(scope, user=user).closed else visible(external_ids, scope, user)


def visible(external_ids: list[str], scope: Scope, user: User | AnonymousUser) -> list[str]:
    """Return the chats that the user may see."""
    if sees_every_chat(user=user):
        return external_ids
    allowed = chats_shown(user=user).filter(pk__in=scope.chat_ids)
    allowed_ids = set(allowed.values_list("external_id", flat=True))
    return [external_id for external_id in external_ids if external_id in allowed_ids]


def pair_rows(scope: Scope, pairs: Sequence[Pair], query: str) -> list[PairRow]:
    """Return the rows of one page of a list; `query` is added to each chat's address."""
    chat_ids = {pair.chat_id for pair in pairs}
    members = scope.members.filter(chat__external_id__in=chat_ids).select_related("chat__topic")
    chats = {member.chat.external_id: member.chat for member in members}
    splits = {member.chat_id: member.split for member in members}
    by_key = {row.key: row for row in scope.criteria}
    versions = newest_versions(criteria=scope.criteria)
    states = _states(scope, [pair for pair in pairs if pair.judge is None])
    return [
        PairRow(
            chat_id=pair.chat_id,
            title=row.title,
            topic=row.topic.name,
            split=splits.get(row.pk, ""),
            excerpt=excerpt(row.messages),
            criterion=by_key[pair.criterion].name,
            human=pair.human,
            judge=pair.judge,
            state="read" if pair.judge is not None else states.get((pair.chat_id, pair.criterion), "none"),
            passes_when=versions[by_key[pair.criterion].pk].passes_when,
            url=f"{reverse('alignment:chat', args=[scope.run.pk, row.pk])}?criterion={pair.criterion}{query}"
            if scope.run
            else "",
        )
        for pair, row in ((pair, chats[pair.chat_id]) for pair in pairs)
    ]


def _states(scope: Scope, pairs: Sequence[Pair]) -> dict[Cell, str]:
    """Return the states of verdicts other than True and False; one query if there are any."""
    if not pairs:
        return {}
    rows = Verdict.objects.filter(run=scope.run, chat__external_id__in={pair.chat_id for pair in pairs})
    rows = rows.filter(criterion__key__in={pair.criterion for pair in pairs})
    states = rows.values_list("chat__external_id", "criterion__key", "state")
    return {(chat, key): state for chat, key, state in states}


def excerpt(messages: list[dict[str, Any]]) -> str:
    """Return the beginning of the customer's first message."""
    text = next((m["content"] for m in messages if m["role"] == "user" and m["content"].strip()), "")
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"
