"""The adjudication queue: pairs of chat and criterion on which raters disagree, most disputed first.

Counts and pages read the consensus rows, in a constant number of queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from django.contrib.auth.models import AnonymousUser
from django.db.models import (
    BigIntegerField,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    TextChoices,
)
from django.db.models.functions import Cast, Greatest, Least

from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.labels import Assignment, Consensus, LabelingJob, RaterNote
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.people.queries.visibility import chats_shown, sees_every_chat

# The sort key is one whole number: dispute, labels, chat, criterion.
# It allows 10,000,000 chats and 100,000 criteria.
PERMILLE = 1000
MANY_LABELS = 999
CRITERIA = 100_000
CHATS = 10_000_000


class _Placed(TypedDict):
    place: int


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    Items = QuerySet[WithAnnotations[Consensus, _Placed]]
else:
    Items = QuerySet  # NB: the annotations are known to the type checker only


class Kind(TextChoices):
    """Kinds of items."""

    DISPUTED = "disputed", "Unresolved or split"
    UNRESOLVED = "unresolved", "Unresolved"
    SPLIT = "split", "Split"
    FLAGGED = "flagged", "Flagged by a rater"
    DECIDED = "decided", "Decided"


@dataclass(frozen=True)
class Filters:
    """Filters of the queue; None and '' = no filter."""

    kind: str = Kind.DISPUTED
    chat_set: ChatSet | None = None
    job: LabelingJob | None = None
    criterion: Criterion | None = None
    dimension: str = ""
    topic: str = ""
    # The filters as a query string without "?", for links that keep them.
    query: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of items of each kind under the other filters."""

    unresolved: int
    split: int
    flagged: int
    decided: int

    @property
    def disputed(self) -> int:
        """Number of unresolved or split items."""
        return self.unresolved + self.split

    def of(self, kind: str) -> int:
        """Return the number of a kind."""
        return int(getattr(self, kind))


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One pair of chat and criterion in the list."""

    chat_id: int
    external_id: str
    topic: str
    criterion: str
    criterion_name: str
    dimension: str
    question: str
    state: str
    by: str
    n_true: int
    n_false: int
    n_na: int
    flagged: bool

    @property
    def votes(self) -> str:
        """Return the label counts, e.g. 2 True, 1 False."""
        counts = ((self.n_true, "True"), (self.n_false, "False"), (self.n_na, "not applicable"))
        return ", ".join(f"{count} {answer}" for count, answer in counts if count)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The items before and after an item; the queue is circular."""

    left: int
    before: QueueItem | None
    after: QueueItem | None


def _items(filters: Filters, user: User | AnonymousUser) -> Items:
    """Return the items that the user may see under all filters but the kind, with sort keys."""
    rows = Consensus.objects.filter(criterion__state=Criterion.State.ACTIVE)
    if not sees_every_chat(user=user):
        rows = rows.filter(chat__in=chats_shown(user=user).values("pk"))
    if filters.chat_set is not None:
        members = ChatSetMember.objects.filter(chat_set=filters.chat_set).values("chat")
        rows = rows.filter(chat__in=members, criterion__rubric=filters.chat_set.rubric_id)
    if filters.job is not None:
        asked = Assignment.objects.filter(job=filters.job).values("chat")
        rows = rows.filter(chat__in=asked, criterion__in=filters.job.criteria.values("pk"))
    if filters.criterion is not None:
        rows = rows.filter(criterion=filters.criterion)
    if filters.dimension:
        rows = rows.filter(criterion__dimension__key=filters.dimension)
    if filters.topic:
        rows = rows.filter(chat__topic__key=filters.topic)
    return rows.annotate(place=_place())


def _place() -> "ExpressionWrapper[Any]":
    """Build the sort key, ascending: larger share against the majority, more labels, chat, criterion."""
    total = F("n_true") + F("n_false") + F("n_na")
    most = Greatest("n_true", "n_false", "n_na")
    # NB: whole numbers give the same order on every database.
    dispute = (total - most) * PERMILLE / Greatest(total, 1)
    rank = (PERMILLE - dispute) * (MANY_LABELS + 1) + MANY_LABELS - Least(total, MANY_LABELS)
    wide = Cast(rank, BigIntegerField())
    place = (wide * CHATS + F("chat_id")) * CRITERIA + F("criterion_id")
    return ExpressionWrapper(place, output_field=BigIntegerField())


# Notes for a lead: "criterion unclear", or a flag on an item or on the whole chat.
_OPEN_FLAGS = RaterNote.objects.filter(
    Q(kind=RaterNote.Kind.FLAG) | Q(kind=RaterNote.Kind.UNCLEAR, criterion__isnull=False), settled_at=None
)
_ON_ITEM = _OPEN_FLAGS.filter(Q(criterion=OuterRef("criterion")) | Q(criterion=None), chat=OuterRef("chat"))


_MAJORITY = Q(by=Consensus.By.MAJORITY)
_UNRESOLVED = Q(state=Consensus.State.UNRESOLVED)
_AGREED = Q(n_true=0, n_false=0) | Q(n_true=0, n_na=0) | Q(n_false=0, n_na=0)
_KINDS: dict[str, Q] = {
    Kind.DISPUTED: _MAJORITY & ~_AGREED,
    Kind.UNRESOLVED: _UNRESOLVED,
    Kind.SPLIT: _MAJORITY & ~_AGREED & ~_UNRESOLVED,
    Kind.FLAGGED: _MAJORITY & Q(chat__in=_OPEN_FLAGS.values("chat")) & Q(Exists(_ON_ITEM)),
    Kind.DECIDED: Q(by=Consensus.By.ADJUDICATION),
}


def queue_counts(*, filters: Filters, user: User | AnonymousUser) -> Counts:
    """Count the items of each kind in two queries."""
    plain = [Kind.UNRESOLVED, Kind.SPLIT, Kind.DECIDED]
    rows = _items(filters, user).order_by()
    counted = rows.aggregate(**{kind.value: Count("pk", filter=_KINDS[kind]) for kind in plain})
    return Counts(**counted, flagged=rows.filter(_KINDS[Kind.FLAGGED]).count())


def queue_items(*, filters: Filters, user: User | AnonymousUser) -> Items:
    """Return the items of the kind in order; `queue_rows` adds names to a page of them."""
    return _items(filters, user).filter(_KINDS[filters.kind]).order_by("place")


def queue_rows(items: Sequence[Consensus]) -> list[QueueItem]:
    """Return these items with names, questions and flags, in three queries."""
    chats = Chat.objects.select_related("topic").only("external_id", "topic__name")
    known = chats.in_bulk({item.chat_id for item in items})
    newest = (
        CriterionVersion.objects.filter(criterion__in={item.criterion_id for item in items})
        .select_related("criterion__dimension")
        .order_by("number")
    )
    versions = {version.criterion_id: version for version in newest}
    notes = _OPEN_FLAGS.filter(chat__in=known)
    flags = set(notes.values_list("chat", "criterion"))
    return [
        _row(
            item,
            known[item.chat_id],
            versions[item.criterion_id],
            flagged=bool({(item.chat_id, item.criterion_id), (item.chat_id, None)} & flags),
        )
        for item in items
    ]


def _row(item: Consensus, chat: Chat, version: CriterionVersion, *, flagged: bool) -> QueueItem:
    return QueueItem(
        chat_id=chat.pk,
        external_id=chat.external_id,
        topic=chat.topic.name,
        criterion=version.criterion.key,
        criterion_name=version.criterion.name,
        dimension=version.criterion.dimension.name,
        question=version.question,
        state=item.state,
        by=item.by,
        n_true=item.n_true,
        n_false=item.n_false,
        n_na=item.n_na,
        flagged=flagged,
    )


def neighbours(
    *, filters: Filters, user: User | AnonymousUser, chat_id: int, criterion_id: int
) -> Neighbours:
    """Return the items before and after this one, even if it is no longer in the queue."""
    own = Consensus.objects.filter(chat=chat_id, criterion=criterion_id).annotate(place=_place())
    place = own.values_list("place", flat=True).first() or 0
    others = queue_items(filters=filters, user=user).exclude(chat=chat_id, criterion=criterion_id)
    after = others.filter(place__gt=place).first() or others.first()
    backwards = others.order_by("-place")
    before = backwards.filter(place__lt=place).first() or backwards.first()
    rows = queue_rows([item for item in (before, after) if item is not None])
    return Neighbours(left=others.count(), before=rows[0] if rows else None, after=rows[-1] if rows else None)
