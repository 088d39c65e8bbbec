"""The scope of a request, limited to the figures that its user may see."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.utils.dateparse import parse_date

from alignment.comparison.core.codes import CONSENSUS, EACH_RATER
from alignment.comparison.core.disclosure_limit import MINIMUM_HOLDOUT_CHATS
from alignment.comparison.queries.cached_documents import cached_document, pin_of
from alignment.comparison.queries.run_choice import RunChoice
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet, Split, Topic
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.people.queries.visibility import holdout_chats, labels_too, reads_holdout, to_label


@dataclass(frozen=True, slots=True)
class OwnChats:
    """Chats of the scope that the user still has to label: hidden in lists, which show only their number.

    `closed`: so few of them are labelled that the figures minus a list would disclose a consensus. Then the
    user sees no list.
    """

    chats: int = 0
    closed: bool = False


def valid_ground_truth(against: str) -> bool:
    """Whether this names a ground truth: consensus, each rater, or one rater."""
    rater = against.removeprefix("rater:")
    return against in (CONSENSUS, EACH_RATER) or (against != rater and bool(rater))


def requested_scope(
    chat_set: ChatSet | None, run: Run | None, query: Mapping[str, str], user: User | AnonymousUser
) -> Scope | None:
    """Read the scope from `split`, `against`, `topic`, `since` and `until` of a query string.

    None if a value is invalid.
    """
    split, against = query.get("split", ""), query.get("against", "") or CONSENSUS
    if (split and split not in Split.values) or not valid_ground_truth(against):
        return None
    topic, days = query.get("topic", ""), [query.get(name, "") for name in ("since", "until")]
    if topic and not Topic.objects.filter(key=topic).exists():
        return None
    try:
        since, until = (parse_date(day) for day in days)
    except ValueError:
        return None
    if (since is None) != (not days[0]) or (until is None) != (not days[1]):
        return None
    scope = Scope(chat_set, run, split, against, topic=topic, since=since, until=until)
    return visible_scope(replace(scope, choice=RunChoice.read(query)), user=user)


def visible_scope(scope: Scope, *, user: User | AnonymousUser) -> Scope:
    """Limit the scope to the figures that the user may see.

    Users without access to the holdout see only totals of it, and no holdout chats of a split in which fewer
    than 10 are compared on a criterion: such figures could disclose a single answer. The rule applies to each
    split and to the whole, so that subtracting splits discloses nothing. A topic or period excludes all
    holdout chats; it is ignored for users who still have to label chats here.
    """
    if scope.is_part and own_chats(scope, user=user).chats:
        scope = replace(scope, topic="", since=None, until=None, kept_whole=True)
    if reads_holdout(user=user):
        return scope
    if scope.is_part:
        return replace(scope, without_holdout=frozenset(Split.values))
    few = _few_held_out(replace(scope, split=""))
    return replace(scope, without_holdout=few) if few else scope


def own_chats(scope: Scope, *, user: User | AnonymousUser) -> OwnChats:
    """The user's own chats in the whole run, for any split or part; none if none of them is labelled yet.

    `closed` is decided by split, because lists show the split of each chat. No query for users who do not
    label.
    """
    if not labels_too(user=user):
        return OwnChats()
    whole = replace(scope, split="", topic="", since=None, until=None)
    own = whole.members.filter(chat__in=to_label(user=user)).order_by()
    counts = _answered(whole, own)
    return OwnChats(own.count(), closed=bool(_few(counts))) if counts else OwnChats()


def _few_held_out(whole: Scope) -> frozenset[str]:
    """Splits in which too few holdout chats are labelled, on some criterion or by some rater.

    Cached by labels and holdout chats: every page reads the holdout chats, but not their labels.
    """
    holdout = whole.members.filter(chat__in=holdout_chats())
    members = list(holdout.order_by("chat_id").values_list("chat_id", "split"))
    if not members:
        return frozenset()
    if whole.run is not None and whole.run.finished_at is None:
        return frozenset(_few_of(whole, holdout))
    pin = pin_of(whole, Report.Kind.HELD_OUT.value, MINIMUM_HOLDOUT_CHATS, members)
    document = cached_document(
        whole, kind=Report.Kind.HELD_OUT, pin=pin, body=lambda: {"few": sorted(_few_of(whole, holdout))}
    )
    return frozenset(document.body["few"])


def _few_of(whole: Scope, holdout: QuerySet[Any]) -> set[str]:
    counts = _answered(whole, holdout.order_by())
    splits = set(holdout.order_by().values_list("split", flat=True).distinct())
    return _few(counts) | (splits - {row["split"] for row in counts})


def _few(counts: list[Any]) -> set[str]:
    """Splits with fewer than 10 labelled chats, on some criterion or by some rater."""
    return {row["split"] for row in counts if (row.get("compared") or row["n"]) < MINIMUM_HOLDOUT_CHATS}


def _answered(whole: Scope, among: QuerySet[Any]) -> list[Any]:
    """Number of labelled chats among these members, by criterion and split, and by rater if needed."""
    about = {"chat__in": among.values("chat_id"), "criterion__in": whole.criteria}
    split = Subquery(whole.members.filter(chat=OuterRef("chat")).order_by().values("split")[:1])
    answers = Consensus.objects.filter(**about).annotate(split=split).values("criterion", "split")
    compared = Count("pk", filter=Q(state__in=Consensus.ANSWERED))
    counts: list[Any] = list(answers.annotate(n=Count("pk"), compared=compared).order_by())
    if whole.rater or whole.each_rater:
        labels = Label.objects.counted().filter(value__isnull=False, **about).annotate(split=split)
        own = labels.filter(rater__name=whole.rater) if whole.rater else labels
        counts += own.values("criterion", "rater", "split").annotate(n=Count("pk")).order_by()
    return counts
