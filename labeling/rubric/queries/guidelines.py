"""Texts for raters: guideline, criterion texts, and changes since the rater last read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.urls import reverse

from labeling.models.labels import Assignment, Label, LabelingJob
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline
from labeling.rubric.queries.criteria import criteria_of, newest_version

# The fields of a version that raters read.
SHOWN = ("question", "definition", "guideline", "true_example", "false_example", "allow_na")


@dataclass(frozen=True, slots=True)
class CriterionText:
    """The texts of one criterion for raters; `number` is the criterion version."""

    key: str
    name: str
    number: int
    question: str
    definition: str
    guideline: str
    true_example: str
    false_example: str
    passes_when: bool


@dataclass(frozen=True, slots=True)
class Guidance:
    """The texts for the rater of a chat.

    `text` is the rubric's guideline in Markdown (number 0 = none); the criterion texts are by key.
    """

    rubric_id: int
    rubric: str
    number: int
    text: str
    criteria: Mapping[str, CriterionText]


@dataclass(frozen=True, slots=True)
class Change:
    """A text that changed for a rater: the rubric's guideline (`criterion` is '') or a criterion's text.

    `old` and `new` are version numbers; `old` 0 = no earlier version.
    """

    rubric_id: int
    criterion: str
    name: str
    old: int
    new: int

    @property
    def url(self) -> str:
        """Return the address of the page that shows the change."""
        page = reverse("labeling:read_guideline", args=[self.rubric_id])
        return f"{page}?{urlencode({'criterion': self.criterion, 'was': self.old})}"


def guideline_in_force(*, rubric_id: int) -> RubricGuideline | None:
    """Return the newest guideline of a rubric, or None."""
    return RubricGuideline.objects.filter(rubric=rubric_id).order_by("number").last()


def guideline_for(*, assignment: Assignment, criteria: Sequence[Criterion] | None = None) -> Guidance:
    """Return the current texts for the rater of this chat; `criteria` as of `criteria_of`, if known."""
    rubric = assignment.job.chat_set.rubric
    active = criteria_of(assignment.job) if criteria is None else criteria
    guideline = guideline_in_force(rubric_id=rubric.pk)
    return Guidance(
        rubric_id=rubric.pk,
        rubric=rubric.name,
        number=guideline.number if guideline else 0,
        text=guideline.text if guideline else "",
        criteria={row.key: criterion_text(row) for row in active},
    )


def criterion_text(criterion: Criterion) -> CriterionText:
    """Return the current texts of a criterion whose versions are prefetched in order."""
    version = newest_version(criterion)
    return CriterionText(
        key=criterion.key,
        name=criterion.name,
        number=version.number,
        question=version.question,
        definition=version.definition,
        guideline=version.guideline,
        true_example=version.true_example,
        false_example=version.false_example,
        passes_when=version.passes_when,
    )


def changes_since(
    *, assignment: Assignment, criteria: Sequence[Criterion] | None = None
) -> tuple[Change, ...]:
    """Return the texts that differ from those that the rater last worked with, the guideline first.

    For a submitted chat these are its own texts. Before that, they are the guideline of the rater's last
    submitted chat of the rubric and each criterion's version of their last label; without one, the texts at
    the start of the lease. So a change is shown until the rater has worked with it.
    """
    active = criteria_of(assignment.job) if criteria is None else criteria
    changes = [_guideline_change(assignment), *_criterion_changes(assignment, active)]
    return tuple(change for change in changes if change is not None)


def _guideline_change(assignment: Assignment) -> Change | None:
    rubric_id = assignment.job.chat_set.rubric_id
    rows = list(RubricGuideline.objects.filter(rubric=rubric_id).order_by("number"))
    last = assignment if assignment.state == Assignment.State.SUBMITTED else _last_submitted(assignment)
    read = [
        row for row in rows if (row.pk == last.guideline_id if last else _existed_at_lease(row, assignment))
    ]
    old, old_text = (read[-1].number, read[-1].text) if read else (0, "")
    if not rows or rows[-1].text == old_text:
        return None
    return Change(rubric_id, criterion="", name="Guideline", old=old, new=rows[-1].number)


def _last_submitted(assignment: Assignment) -> Assignment | None:
    """Return the rater's last submitted chat of the rubric, with its guideline."""
    rows = Assignment.objects.filter(
        rater=assignment.rater_id,
        state=Assignment.State.SUBMITTED,
        job__chat_set__rubric=assignment.job.chat_set.rubric_id,
    )
    return rows.order_by("-submitted_at").first()


def _existed_at_lease(row: RubricGuideline | CriterionVersion, assignment: Assignment) -> bool:
    """Whether the text existed when the rater got the chat."""
    return assignment.taken_at is None or row.created_at <= assignment.taken_at


def _criterion_changes(assignment: Assignment, criteria: Sequence[Criterion]) -> list[Change | None]:
    # With a single version there is no change, so skip the query.
    reworded = [criterion for criterion in criteria if len(criterion.versions.all()) > 1]
    read = _versions_read(assignment, reworded) if reworded else {}
    return [_criterion_change(assignment, criterion, read.get(criterion.pk)) for criterion in reworded]


def _versions_read(assignment: Assignment, criteria: Sequence[Criterion]) -> dict[int, int | None]:
    """Return the version number of the rater's last label by criterion id."""
    labels = Label.objects.filter(rater=assignment.rater_id, state=Label.State.SUBMITTED)
    if assignment.state == Assignment.State.SUBMITTED:
        labels = labels.filter(chat=assignment.chat_id)
    last = labels.filter(criterion=OuterRef("pk")).order_by("-given_at").values("version__number")
    rows = Criterion.objects.filter(pk__in=[criterion.pk for criterion in criteria])
    return dict(rows.order_by().annotate(read=Subquery(last[:1])).values_list("pk", "read"))


def _criterion_change(assignment: Assignment, criterion: Criterion, read: int | None) -> Change | None:
    versions, new = list(criterion.versions.all()), newest_version(criterion)
    old = [
        row
        for row in versions
        if (_existed_at_lease(row, assignment) if read is None else row.number == read)
    ] or versions[:1]
    if _shown(old[-1]) == _shown(new):
        return None
    return Change(
        criterion.rubric_id, criterion=criterion.key, name=criterion.name, old=old[-1].number, new=new.number
    )


def _shown(version: CriterionVersion) -> tuple[object, ...]:
    return tuple(getattr(version, name) for name in SHOWN)


# ---------- news outside the rating screen ----------


@dataclass(frozen=True, slots=True)
class TextNews:
    """A text that changed since the rater last worked with it, and when its newest version was saved."""

    change: Change
    at: datetime


def text_news(*, rater: Rater, jobs: QuerySet[LabelingJob]) -> list[TextNews]:
    """Return the texts of these jobs that differ from those the rater last labelled with, newest first.

    A text that they never labelled with is no news. Four queries.
    """
    rubrics = Rubric.objects.filter(pk__in=jobs.values("chat_set__rubric"))
    criteria = Criterion.objects.filter(state=Criterion.State.ACTIVE, pk__in=jobs.values("criteria"))
    submitted = Assignment.objects.filter(rater=rater, state=Assignment.State.SUBMITTED)
    last = submitted.filter(job__chat_set__rubric=OuterRef("pk")).order_by("-submitted_at")
    labels = Label.objects.filter(rater=rater, state=Label.State.SUBMITTED, criterion=OuterRef("pk"))
    guidelines = rubrics.annotate(
        last=Subquery(last.values("pk")[:1]), read=Subquery(last.values("guideline__number")[:1])
    ).prefetch_related(Prefetch("guidelines", RubricGuideline.objects.order_by("number")))
    texts = criteria.annotate(
        read=Subquery(labels.order_by("-given_at").values("version__number")[:1])
    ).prefetch_related(Prefetch("versions", CriterionVersion.objects.order_by("number")))
    news = [*map(_guideline_news, guidelines), *map(_criterion_news, texts)]
    return sorted((one for one in news if one is not None), key=lambda one: one.at, reverse=True)


def _guideline_news(rubric: Any) -> TextNews | None:
    """`rubric` has its guidelines, and the rater's `last` submission with the guideline `read` then."""
    rows = list(rubric.guidelines.all())
    old = next((row for row in rows if row.number == rubric.read), None)
    if not rows or rubric.last is None or rows[-1].text == (old.text if old else ""):
        return None
    old_number = old.number if old else 0
    return TextNews(
        Change(rubric.pk, "", f"Guideline of {rubric.name}", old_number, rows[-1].number), rows[-1].created_at
    )


def _criterion_news(criterion: Any) -> TextNews | None:
    """`criterion` has its versions, and the number of the one last `read`."""
    new = newest_version(criterion)
    old = next((row for row in criterion.versions.all() if row.number == criterion.read), None)
    if old is None or _shown(old) == _shown(new):
        return None
    change = Change(criterion.rubric_id, criterion.key, criterion.name, old.number, new.number)
    return TextNews(change, new.created_at)
