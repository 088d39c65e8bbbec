"""Scope of a quality page: the labels on a chat set, or on chats submitted in one job."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from labeling.consensus.core.dropped import DroppedLabels
from labeling.consensus.queries import dropped_labels
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Assignment, Label, LabelingJob
from labeling.models.rubric import Criterion


@dataclass(frozen=True)
class QualityScope:
    """A set, or a job on it; `only` limits the labels to one criterion key."""

    chat_set: ChatSet
    job: LabelingJob | None = None
    only: str = ""

    @property
    def name(self) -> str:
        """Name of the job or the set."""
        return self.job.name if self.job else self.chat_set.name

    @cached_property
    def all_criteria(self) -> list[Criterion]:
        """Criteria of the job, or the active criteria of the set's rubric, in rubric order."""
        rows = Criterion.objects.select_related("dimension").order_by("dimension__position", "position", "pk")
        if self.job is not None:
            return list(rows.filter(pk__in=self.job.criteria.values("pk")))
        return list(rows.filter(rubric=self.chat_set.rubric_id, state=Criterion.State.ACTIVE))

    @property
    def criteria(self) -> list[Criterion]:
        """All criteria, or the one named by `only`."""
        return [row for row in self.all_criteria if self.only in ("", row.key)]

    @property
    def on_criteria(self) -> Q:
        """Filter for rows on the criteria."""
        return Q(criterion__in=[row.pk for row in self.criteria])

    @property
    def chats(self) -> QuerySet[Any, Any]:
        """Ids of the chats, as a subquery."""
        if self.job is not None:
            return self.assignments.values("chat")
        return ChatSetMember.objects.filter(chat_set=self.chat_set).values("chat")

    @property
    def on_chats(self) -> Q:
        """Filter for rows on the chats."""
        return Q(chat__in=self.chats)

    def labels_on(self, chat_ids: Collection[int]) -> QuerySet[Label]:
        """Return the counted labels on these chats; in a job only of raters who submitted the chat in it."""
        return self._submitted(Label.objects.counted().filter(self.on_criteria, chat__in=chat_ids))

    @property
    def carried(self) -> int:
        """Number of counted labels that carried over from other criteria."""
        labels = Label.objects.counted().filter(self.on_criteria, self.on_chats, carried_from__isnull=False)
        return self._submitted(labels).count()

    @cached_property
    def dropped(self) -> list[DroppedLabels]:
        """Labels that answer an older text and no longer count, by criterion."""
        labels = self._submitted(Label.objects.given().filter(self.on_criteria, self.on_chats))
        return dropped_labels(labels=labels, criteria=self.criteria)

    def _submitted(self, rows: QuerySet[Label]) -> QuerySet[Label]:
        """Limit the labels of a job to raters who submitted the chat in it."""
        if self.job is None:
            return rows
        done = self.assignments.filter(state=Assignment.State.SUBMITTED)
        return rows.filter(Exists(done.filter(chat=OuterRef("chat"), rater=OuterRef("rater"))))

    @property
    def assignments(self) -> QuerySet[Assignment]:
        """Assignments of the job, or of every job on the set."""
        if self.job is not None:
            return Assignment.objects.filter(job=self.job).order_by()
        return Assignment.objects.filter(job__chat_set=self.chat_set).order_by()

    def narrowed(self, key: str) -> "QualityScope":
        """Return the scope limited to one criterion; '' for all."""
        return replace(self, only=key)

    def url(self, page: str, *args: str, **query: str) -> str:
        """Return the URL of a quality page on this scope, without empty parameters."""
        if self.job is not None:
            address = reverse(f"quality:{page}", args=[self.job.pk, *args])
        else:
            address = reverse(f"quality:set_{page}", args=[self.chat_set.pk, *args])
        return address + _query(query)

    @property
    def adjudication_query(self) -> str:
        """Query string of the adjudication pages for this scope."""
        where = {"job": str(self.job.pk)} if self.job is not None else {"set": str(self.chat_set.pk)}
        return _query({"criterion": self.only, **where})

    @property
    def api_url(self) -> str:
        """URL of the same statistics as JSON."""
        if self.job is not None:
            address = reverse("api_job_quality", args=[self.job.pk])
        else:
            address = reverse("api_set_quality", args=[self.chat_set.pk])
        return address + _query({"criterion": self.only})


def _query(parameters: Mapping[str, str]) -> str:
    text = urlencode({name: value for name, value in parameters.items() if value})
    return f"?{text}" if text else ""


def quality_scope(
    *, query: Mapping[str, str], set_id: int | None = None, job_id: int | None = None
) -> QualityScope | None:
    """Return the scope of a request; None if the set, job or criterion does not exist."""
    if job_id is not None:
        job = LabelingJob.objects.select_related("chat_set__rubric").filter(pk=job_id).first()
        scope = QualityScope(job.chat_set, job) if job else None
    elif set_id is not None:
        chat_set = ChatSet.objects.select_related("rubric").filter(pk=set_id).first()
        scope = QualityScope(chat_set) if chat_set else None
    else:
        scope = None
    key = query.get("criterion", "")
    if scope is None or (key and key not in {row.key for row in scope.all_criteria}):
        return None
    return scope.narrowed(key)
