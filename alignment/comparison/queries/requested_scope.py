"""The scope that a request asks for, narrowed to what its user may be told."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.utils.dateparse import parse_date

from alignment.comparison.core.codes import CONSENSUS, EACH_RATER
from alignment.comparison.core.disclosure_limit import FEWEST
from alignment.comparison.queries.cached_documents import kept, pin_of
from alignment.comparison.queries.run_choice import RunChoice
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet, Split, Topic
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.people.queries.visibility import held_out, labels_too, reads_holdout, to_label


@dataclass(frozen=True, slots=True)
class Own:
    """The chats covered that are still the user's to label: lists leave them out and tell only how many.

    `closed`: so few of them have an answer that counts, with a list taken from them, would tell it. Then no
    list opens.
    """

    chats: int = 0
    closed: bool = False


def valid_ground_truth(against: str) -> bool:
    """Whether this names a ground truth that a report can be taken against."""
    rater = against.removeprefix("rater:")
    return against in (CONSENSUS, EACH_RATER) or (against != rater and bool(rater))


def requested_scope(
    chat_set: ChatSet | None, run: Run | None, query: Mapping[str, str], user: User | AnonymousUser
) -> Scope | None:
    """The scope that `split`, `against`, `topic`, `since` and `until` of a query string ask for.

    None when they make no sense.
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
    asked = Scope(chat_set, run, split, against, topic=topic, since=since, until=until)
    return narrowed(replace(asked, choice=RunChoice.read(query)), user=user)


def narrowed(scope: Scope, *, user: User | AnonymousUser) -> Scope:
    """The scope whose figures the user may be told.

    Who may not read the holdout is told of it in sum, and nothing of a split's held-out chats where fewer
    than 10 are compared on a criterion: such figures would come close to telling what is said of one. Decided
    split by split and for the whole alike, or taking splits from the whole would tell. Topics and days cut
    the holdout too finely to be told at all, and the chats still to label of whoever labels as well.
    """
    if scope.is_part and own_chats(scope, user=user).chats:
        scope = replace(scope, topic="", since=None, until=None, kept_whole=True)
    if reads_holdout(user=user):
        return scope
    if scope.is_part:
        return replace(scope, without_holdout=frozenset(Split.values))
    few = _few_held_out(replace(scope, split=""))
    return replace(scope, without_holdout=few) if few else scope


def own_chats(scope: Scope, *, user: User | AnonymousUser) -> Own:
    """Those of the whole run, whatever the split or part; none where nobody has answered any of them yet.

    Decided split by split: lists name the split of each chat. No query for who does not label.
    """
    if not labels_too(user=user):
        return Own()
    whole = replace(scope, split="", topic="", since=None, until=None)
    own = whole.members.filter(chat__in=to_label(user=user)).order_by()
    counts = _answered(whole, own)
    return Own(own.count(), closed=bool(_few(counts))) if counts else Own()


def _few_held_out(whole: Scope) -> frozenset[str]:
    """The splits with held-out chats of which on some criterion, or by some rater, too few are answered.

    Counted once for the same answers and the same held-out chats: these are read for each page, what was
    answered on them is not.
    """
    held = whole.members.filter(chat__in=held_out())
    marks = list(held.order_by("chat_id").values_list("chat_id", "split"))
    if not marks:
        return frozenset()
    if whole.run is not None and whole.run.finished_at is None:
        return frozenset(_few_of(whole, held))
    pin = pin_of(whole, Report.Kind.HELD_OUT.value, FEWEST, marks)
    found = kept(
        whole, kind=Report.Kind.HELD_OUT, pin=pin, body=lambda: {"few": sorted(_few_of(whole, held))}
    )
    return frozenset(found.body["few"])


def _few_of(whole: Scope, held: QuerySet[Any]) -> set[str]:
    counts = _answered(whole, held.order_by())
    splits = set(held.order_by().values_list("split", flat=True).distinct())
    return _few(counts) | (splits - {row["split"] for row in counts})


def _few(counts: list[Any]) -> set[str]:
    """The splits with fewer than 10 answers, of somebody on some criterion."""
    return {row["split"] for row in counts if (row.get("compared") or row["n"]) < FEWEST}


def _answered(whole: Scope, among: QuerySet[Any]) -> list[Any]:
    """How many of these members have an answer: rows by criterion and split, where asked for by rater too."""
    about = {"chat__in": among.values("chat_id"), "criterion__in": whole.criteria}
    split = Subquery(whole.members.filter(chat=OuterRef("chat")).order_by().values("split")[:1])
    answers = Consensus.objects.filter(**about).annotate(split=split).values("criterion", "split")
    compared = Count("pk", filter=Q(state__in=(Consensus.State.TRUE, Consensus.State.FALSE)))
    counts: list[Any] = list(answers.annotate(n=Count("pk"), compared=compared).order_by())
    if whole.rater or whole.each_rater:
        labels = Label.objects.counted().filter(value__isnull=False, **about).annotate(split=split)
        own = labels.filter(rater__name=whole.rater) if whole.rater else labels
        counts += own.values("criterion", "rater", "split").annotate(n=Count("pk")).order_by()
    return counts
