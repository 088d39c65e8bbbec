"""Disagreements on one criterion: the champion's newest runs on the dev and train splits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import AnonymousUser
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.urls import reverse

from alignment.comparison.queries.rationales import judge_rationales, short_rationale
from alignment.comparison.queries.requested_scope import OwnChats, own_chats
from alignment.comparison.queries.scope import Scope
from alignment.prompts.queries.version_metrics import VersionMetrics
from alignment.prompts.queries.versions import VersionRow
from alignment.reports.core import Pair
from alignment.reports.queries.chat_lists import CELL_CODES, PairRow, pair_rows
from alignment.reports.queries.label_minimums import label_minimums
from alignment.reports.queries.page import notices
from alignment.statistics.agreement import Confusion
from alignment.statistics.label_needs import START_VALUES, label_summary, needs
from evaluation.models.runs import RunChat, Verdict
from labeling.models.chats import Split
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown, sees_every_chat

READ_BY_AUTHORS = (Split.DEV, Split.TRAIN)
DISAGREEMENTS_SHOWN = 5

Words = Mapping[str, str]  # by a chat's external id


@dataclass(frozen=True, slots=True)
class DisagreementChat:
    """A chat on which judge and consensus differ, with the reasons of both; '' where none was given."""

    row: PairRow
    human_reason: str
    judge_reason: str


@dataclass(frozen=True, slots=True)
class CriterionDisagreements:
    """Consensus and champion on one split: counts, links to their chats, the first disagreements.

    `passes_when` is the answer that is good for the chatbot. `more` says how many labels a status, ±6 points
    and the gate need.

    `hidden` counts disagreements on chats that this user cannot see. It is 0 for a user who must still label
    chats of the run; `own` counts those chats.
    """

    metrics: VersionMetrics
    scope: Scope
    passes_when: bool
    more: str
    cells: dict[str, str]
    chats: tuple[DisagreementChat, ...]
    hidden: int
    own: OwnChats

    @property
    def name(self) -> str:
        """Criterion and split: the caption of the matrix."""
        return f"{self.metrics.criterion.name}, {self.metrics.split}"

    @property
    def confusion(self) -> Confusion:
        """The confusion counts."""
        return self.metrics.table

    @property
    def count(self) -> int:
        """The number of disagreements."""
        return self.metrics.table.fn + self.metrics.table.fp


def disagreements_of(
    champion: VersionRow | None, *, passes_when: bool, user: User | AnonymousUser
) -> list[CriterionDisagreements]:
    """Return one entry for each split with verdicts of the champion; the number of queries is constant."""
    newest = {one.split: one for one in reversed(champion.metrics)} if champion else {}
    shown = [newest[split] for split in READ_BY_AUTHORS if split in newest]
    minimums = label_minimums() if shown else START_VALUES
    return [
        _disagreements(one, passes_when, label_summary(needs(one.label_counts, minimums)), user)
        for one in shown
    ]


def notices_of(disagreements: Iterable[CriterionDisagreements]) -> list[str]:
    """Return the warnings about the verdicts and labels shown, each once."""
    return list(dict.fromkeys(text for one in disagreements for text in notices(one.scope)))


def _disagreements(
    one: VersionMetrics, passes_when: bool, more: str, user: User | AnonymousUser
) -> CriterionDisagreements:
    key, query = one.criterion.key, {"split": one.split}
    scope = Scope(one.run.chat_set, one.run, one.split, only=key)
    shown, own = _differing_verdicts(one), own_chats(scope, user=user)
    if own.closed:
        shown = shown.none()
    elif not sees_every_chat(user=user):
        shown = shown.filter(chat__in=chats_shown(user=user).values("pk"))
    disagreements = CriterionDisagreements(
        metrics=one,
        scope=scope,
        passes_when=passes_when,
        more=more,
        cells={
            cell: reverse("alignment:cell", args=[one.run.pk, key, cell], query=query) for cell in CELL_CODES
        },
        chats=tuple(_chats(one, scope, list(shown.select_related("chat")[:DISAGREEMENTS_SHOWN]))),
        hidden=0,
        own=own,
    )
    return disagreements if own.chats else replace(disagreements, hidden=disagreements.count - shown.count())


def _differing_verdicts(one: VersionMetrics) -> QuerySet[Verdict]:
    """Return the split's verdicts that differ from the consensus, in the order of the set.

    Filtered in the database: a page needs a handful of a large set.
    """
    consensus = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    place = RunChat.objects.filter(run=one.run, split=one.split, chat=OuterRef("chat"))
    rows = Verdict.objects.filter(run=one.run, criterion=one.criterion, state=Verdict.State.READ)
    compared = rows.annotate(
        consensus=Subquery(consensus.values("state")[:1]), place=Subquery(place.values("pk")[:1])
    ).filter(place__isnull=False)
    differs = Q(value=True, consensus=Consensus.State.FALSE) | Q(value=False, consensus=Consensus.State.TRUE)
    return compared.filter(differs).order_by("place")


def _chats(one: VersionMetrics, scope: Scope, verdicts: Sequence[Verdict]) -> Iterable[DisagreementChat]:
    key = one.criterion.key
    pairs = [Pair(row.chat.external_id, key, not row.value, bool(row.value)) for row in verdicts]
    human, judge = _human_reasons(one.criterion, pairs), judge_rationales(verdicts)
    for verdict, row in zip(verdicts, pair_rows(scope, pairs, f"&split={one.split}"), strict=True):
        yield DisagreementChat(row, human.get(row.chat_id, ""), judge[verdict.pk])


def _human_reasons(criterion: Criterion, pairs: Sequence[Pair]) -> Words:
    """Return by chat the first rationale of a rater whose label equals the consensus."""
    answers = {pair.chat_id: pair.human for pair in pairs}
    labels = Label.objects.counted().filter(criterion=criterion, chat__external_id__in=answers)
    rows = labels.exclude(rationale="").order_by("-pk").values_list("chat__external_id", "value", "rationale")
    return {chat: short_rationale(text) for chat, value, text in rows if answers[chat] == value}
