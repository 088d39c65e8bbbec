"""Chat sets with counts of chats and labels. The number of queries is constant."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.urls import reverse

from common.search.registry import Hit, Query, excerpt
from labeling.chats.queries import chats_matching, contents_of
from labeling.consensus.queries import dropped_labels
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split
from labeling.models.labels import Assignment, Consensus, Label, LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.people.queries.visibility import accounts_with, chats_shown, holdout_chats, reads_holdout


@dataclass(frozen=True, slots=True)
class SetRow:
    """One set in the list."""

    id: int
    name: str
    kind: str
    rubric: str
    chats: int
    train: int
    dev: int
    holdout: int
    # Chats on which at least one criterion has labels, and the labelling jobs that are open.
    labelled: int
    open_jobs: int


@dataclass(frozen=True, slots=True)
class PlanSets:
    """A sample plan whose sets have a page of their own, and the newest day that it sampled."""

    id: int
    name: str
    newest: date


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic of a set: chats by split, and consensus answers over all criteria.

    `held`: the row of all holdout chats for users who may not see them; no topic, no answers.
    """

    topic: str
    train: int
    dev: int
    holdout: int
    labelled: int
    answered: int
    unresolved: int
    held: bool = False

    @property
    def chats(self) -> int:
        """Number of chats of the topic in the set."""
        return self.train + self.dev + self.holdout


@dataclass(frozen=True, slots=True)
class ChatRow:
    """One chat of a set: its labels, consensus answers, unresolved ones, and its jobs by id and name."""

    id: int
    external_id: str
    topic: str
    split: str
    messages: int
    labels: int
    raters: int
    answered: int
    unresolved: int
    jobs: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, slots=True)
class KindChoice:
    """A kind that a lead may choose for a set.

    `meaning`: what jobs do with such a set. `refusal`: why the set cannot have this kind now, "" if it can.
    `warning`: the effect on blindness that the lead must confirm, "" for none.
    """

    kind: str
    label: str
    meaning: str
    current: bool
    refusal: str = ""
    warning: str = ""


_MEANINGS = {
    ChatSet.Kind.CURATED: "Raters label its chats in jobs. Judges run on it.",
    ChatSet.Kind.GOLD: "Jobs mix in its decided chats, to measure raters against the decisions.",
    ChatSet.Kind.CALIBRATION: "Every rater of a job labels all of its chats first; then they discuss them.",
}


def kind_choices(*, chat_set: ChatSet) -> list[KindChoice]:
    """Return the kinds to choose from, each with why it is refused or what to confirm."""
    refusals = _kind_refusals(chat_set)
    warnings = _kind_warnings(chat_set)
    choices = []
    for kind, meaning in _MEANINGS.items():
        current = kind == chat_set.kind
        either = {kind, ChatSet.Kind(chat_set.kind)}
        reasons = [text for involved, text in refusals if involved in either]
        choices.append(
            KindChoice(
                kind=kind.value,
                label=str(kind.label),
                meaning=meaning,
                current=current,
                refusal="" if current or not reasons else reasons[0],
                warning="" if current else warnings.get(kind, ""),
            )
        )
    return choices


def _kind_refusals(chat_set: ChatSet) -> list[tuple[ChatSet.Kind, str]]:
    """Return reasons against a change that leaves or enters a kind."""
    reasons = []
    if chat_set.kind == ChatSet.Kind.SAMPLE:
        text = "It is a random sample: reports weight its labels by that."
        reasons.append((ChatSet.Kind.SAMPLE, text))
    if jobs := _job_names(LabelingJob.objects.filter(chat_set=chat_set)):
        text = f"It has labelling jobs ({jobs}): in a calibration set they want every rater’s labels."
        reasons.append((ChatSet.Kind.CALIBRATION, text))
    mixing = LabelingJob.objects.filter(gold_set=chat_set).exclude(state=LabelingJob.State.CLOSED)
    if chat_set.kind == ChatSet.Kind.GOLD and (jobs := _job_names(mixing)):
        text = f"Unfinished jobs mix in its chats ({jobs}). Close them first."
        reasons.append((ChatSet.Kind.GOLD, text))
    return reasons


def _job_names(jobs: QuerySet[LabelingJob]) -> str:
    names = list(jobs.order_by("-pk").values_list("name", flat=True)[:4])
    return ", ".join([*names[:3], "…"] if len(names) > 3 else names)


def _kind_warnings(chat_set: ChatSet) -> dict[ChatSet.Kind, str]:
    """Return what a kind changes about blindness in other work on the set's chats."""
    chats = ChatSetMember.objects.filter(chat_set=chat_set).values("chat")
    unfinished = LabelingJob.objects.exclude(state=LabelingJob.State.CLOSED)
    asked = Assignment.objects.filter(job__in=unfinished, chat__in=chats)
    also = asked.aggregate(chats=Count("chat", distinct=True))["chats"]
    shared = f" {also} of its chats are in unfinished jobs." if also else ""
    return {
        ChatSet.Kind.GOLD: (
            "The decisions on its chats become known answers that leads compare raters with: "
            f"do not show them to raters. A rater never gets a gold chat that they labelled before.{shared}"
        ),
        ChatSet.Kind.CALIBRATION: (
            "Raters see each other’s answers on its chats when they discuss the round. "
            f"Labels that they give on these chats later are not blind.{shared}"
        ),
    }


def set_rows(*, user: User | AnonymousUser, sets: QuerySet[ChatSet] | None = None) -> list[SetRow]:
    """List these chat sets in their order; by default those of lists, by name.

    For users who may not see the holdout its labelled chats do not count.
    """
    splits = {split.value: Count("members", filter=Q(members__split=split)) for split in Split}
    if sets is None:
        sets = ChatSet.objects.listed().order_by("name")
    own = list(sets.values_list("pk", flat=True))
    members = _labelled_chats().filter(chat_set__in=own)
    if not reads_holdout(user=user):
        members = members.exclude(chat__in=holdout_chats())
    jobs = LabelingJob.objects.filter(state=LabelingJob.State.OPEN, chat_set__in=own)
    labelled = dict(members.values_list("chat_set").annotate(chats=Count("chat")))
    open_jobs = dict(jobs.order_by().values_list("chat_set").annotate(Count("pk")))
    return [
        SetRow(
            id=row.pk,
            name=row.name,
            kind=row.get_kind_display(),
            rubric=row.rubric.name,
            chats=sum(getattr(row, split) for split in splits),
            labelled=labelled.get(row.pk, 0),
            open_jobs=open_jobs.get(row.pk, 0),
            **{split: getattr(row, split) for split in splits},
        )
        for row in sets.select_related("rubric").annotate(**splits)
    ]


def plan_sets() -> list[PlanSets]:
    """List the sample plans that have made chat sets, by name; one query."""
    draws = SampleDraw.objects.filter(plan=OuterRef("pk"), chat_set__isnull=False).order_by("-day")
    newest = SamplePlan.objects.annotate(newest=Subquery(draws.values("day")[:1]))
    plans = newest.filter(newest__isnull=False).order_by("name").values_list("pk", "name", "newest")
    return [PlanSets(*row) for row in plans]


def names_of_sets() -> list[str]:
    """Return the names of the sets to which chats may be added: all but random samples."""
    rows = ChatSet.objects.exclude(kind=ChatSet.Kind.SAMPLE).order_by("name")
    return list(rows.values_list("name", flat=True))


def _labelled_chats() -> QuerySet[ChatSetMember]:
    answered = Consensus.objects.filter(chat=OuterRef("chat"), criterion__rubric=OuterRef("chat_set__rubric"))
    return ChatSetMember.objects.filter(Exists(answered)).order_by()


def topic_rows(*, chat_set: ChatSet, user: User | AnonymousUser) -> list[TopicRow]:
    """List the set's topics by name.

    For users who may not see holdout chats, one last row without a name counts all chats that are holdout
    in any set: it shows neither their topics nor their labels.
    """
    members = ChatSetMember.objects.filter(chat_set=chat_set).order_by()
    if reads_holdout(user=user):
        return _by_topic(chat_set, members)
    holdout = members.filter(chat__in=holdout_chats())
    sizes = holdout.aggregate(**_sizes())
    rows = _by_topic(chat_set, members.exclude(chat__in=holdout_chats()))
    outside = TopicRow(topic="", labelled=0, answered=0, unresolved=0, held=True, **sizes)
    return [*rows, outside] if outside.chats else rows


def _sizes() -> dict[str, Count]:
    """Count members by split, in the order of a row's fields."""
    return {
        split.value: Count("pk", filter=Q(split=split)) for split in (Split.TRAIN, Split.DEV, Split.HOLDOUT)
    }


def _by_topic(chat_set: ChatSet, members: QuerySet[ChatSetMember]) -> list[TopicRow]:
    sizes = members.values_list("chat__topic__name").annotate(**_sizes())
    tied = Q(state=Consensus.State.UNRESOLVED)
    cells = Consensus.objects.filter(chat__in=members.values("chat"), criterion__rubric=chat_set.rubric_id)
    counts = (
        cells.order_by()
        .values_list("chat__topic__name")
        .annotate(
            labelled=Count("chat", distinct=True),
            answered=Count("pk", filter=~tied),
            unresolved=Count("pk", filter=tied),
        )
    )
    answers = {topic: numbers for topic, *numbers in counts}
    rows = [TopicRow(topic, *numbers, *answers.get(topic, (0, 0, 0))) for topic, *numbers in sizes]
    return sorted(rows, key=lambda row: row.topic)


def set_members(
    *, chat_set: ChatSet, user: User | AnonymousUser, topic: str = "", split: str = ""
) -> QuerySet[ChatSetMember]:
    """Return the members that the user may see, in the set's order."""
    members = ChatSetMember.objects.filter(chat_set=chat_set, chat__in=chats_shown(user=user).values("pk"))
    if topic:
        members = members.filter(chat__topic__name=topic)
    if split:
        members = members.filter(split=split)
    return members.select_related("chat__topic").order_by("position")


def chat_rows(*, chat_set: ChatSet, members: Sequence[ChatSetMember]) -> list[ChatRow]:
    """Return a page of members with their counts of answers."""
    cells = Consensus.objects.filter(
        chat__in=[member.chat_id for member in members], criterion__rubric=chat_set.rubric_id
    )
    counted = (
        cells.order_by()
        .values("chat")
        .annotate(cells=Count("pk"), unresolved=Count("pk", filter=Q(state=Consensus.State.UNRESOLVED)))
    )
    answers = {row["chat"]: (row["cells"], row["unresolved"]) for row in counted}
    chats = [member.chat_id for member in members]
    labels, jobs = _label_counts(chat_set, chats), _jobs_of(chats)
    rows = []
    for member in members:
        cells_here, unresolved = answers.get(member.chat_id, (0, 0))
        given, raters = labels.get(member.chat_id, (0, 0))
        rows.append(
            ChatRow(
                id=member.chat_id,
                external_id=member.chat.external_id,
                topic=member.chat.topic.name,
                split=member.split,
                messages=member.chat.message_count,
                labels=given,
                raters=raters,
                answered=cells_here - unresolved,
                unresolved=unresolved,
                jobs=jobs.get(member.chat_id, ()),
            )
        )
    return rows


def _label_counts(chat_set: ChatSet, chats: Collection[int]) -> dict[int, tuple[int, int]]:
    """Count submitted labels and their raters by chat, on the criteria of the set's rubric."""
    given = Label.objects.given().filter(chat__in=chats, criterion__rubric=chat_set.rubric_id)
    counts = given.order_by().values_list("chat").annotate(Count("pk"), Count("rater", distinct=True))
    return {chat: (labels, raters) for chat, labels, raters in counts}


def _jobs_of(chats: Collection[int]) -> dict[int, list[tuple[int, str]]]:
    """Return the labelling jobs of these chats, newest first."""
    asked = Assignment.objects.filter(chat__in=chats).order_by("-job").distinct()
    jobs: dict[int, list[tuple[int, str]]] = {}
    for chat, pk, name in asked.values_list("chat", "job", "job__name"):
        jobs.setdefault(chat, []).append((pk, name))
    return jobs


@dataclass(frozen=True, slots=True)
class CriterionLabels:
    """The labels of a chat on one criterion, by rater, and the consensus, "" without labels that count."""

    name: str
    question: str
    consensus: str
    labels: Sequence[Label]


def chat_labels(*, chat_set: ChatSet, chat: Chat) -> list[CriterionLabels]:
    """Return a chat's labels by criterion of the set's rubric, in its order; three queries."""
    criteria = chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)
    ordered = criteria.order_by("dimension__position", "dimension_id", "position", "pk")
    rows = list(ordered.prefetch_related(Prefetch("versions", CriterionVersion.objects.order_by("number"))))
    cells = Consensus.objects.filter(chat=chat, criterion__in=criteria)
    states = dict(cells.values_list("criterion", "state"))
    labels: dict[int, list[Label]] = {}
    given = Label.objects.given().filter(chat=chat, criterion__in=criteria).select_related("rater")
    for label in given.order_by("rater__name", "pk"):
        labels.setdefault(label.criterion_id, []).append(label)
    return [
        CriterionLabels(
            row.name, list(row.versions.all())[-1].question, states.get(row.pk, ""), labels.get(row.pk, ())
        )
        for row in rows
    ]


def chat_places(chat: Chat) -> list[ChatSetMember]:
    """Return the sets that a chat is in, each with its split there."""
    return list(ChatSetMember.objects.filter(chat=chat).select_related("chat_set").order_by("chat_set__name"))


def chat_jobs(chat: Chat) -> Sequence[tuple[int, str]]:
    """Return the labelling jobs of a chat by id and name, newest first."""
    return _jobs_of([chat.pk]).get(chat.pk, ())


def demo_notices(*, chat_set: ChatSet) -> list[str]:
    """Return the notices for demo data in a set."""
    members = ChatSetMember.objects.filter(chat_set=chat_set)
    chats = members.filter(chat__origin=Chat.Origin.DEMO).exists()
    labels = Label.objects.filter(chat__in=members.values("chat"), source=Label.Source.DEMO).exists()
    return ["chats written for this demo"] * chats + ["labels written for this demo"] * labels


def dropped_notices(*, chat_set: ChatSet, user: User | AnonymousUser) -> list[str]:
    """Return the notices on labels that no longer count, on chats of a set that are not hidden as holdout."""
    members = ChatSetMember.objects.filter(chat_set=chat_set)
    if not reads_holdout(user=user):
        members = members.exclude(chat__in=holdout_chats())
    criteria = list(chat_set.rubric.criteria.filter(state="active").order_by("position", "pk"))
    labels = Label.objects.given().filter(chat__in=members.values("chat"))
    return [row.words for row in dropped_labels(labels=labels, criteria=criteria)]


def labellers() -> QuerySet[User]:
    """Return the accounts that may label chats, by name."""
    return accounts_with("label_chats").select_related("rater")


def set_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the chat sets that match by name, if the user may open them."""
    if not user.has_perm("labeling.see_judge"):
        return []
    rows = ChatSet.objects.filter(query.matches("name")).select_related("rubric").order_by("name")[:limit]
    return [
        Hit(
            row.name, reverse("labeling:set_detail", args=[row.pk]), f"{row.get_kind_display()}, {row.rubric}"
        )
        for row in rows
    ]


def chat_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the chats of sets that match by id, title, topic or text and that the user may read."""
    if not user.has_perm("labeling.see_judge"):
        return []
    chats = chats_shown(user=user).filter(Exists(ChatSetMember.objects.filter(chat=OuterRef("pk"))))
    return [
        Hit(
            chat.external_id,
            reverse("alignment:chat_newest", args=[chat.pk]),
            ": ".join(filter(None, [chat.title, excerpt(contents_of(chat), query)])),
        )
        for chat in chats_matching(chats, query, limit=limit, titles=True)
    ]
