"""The labels at stake when a text for raters changes."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, QuerySet

from labeling.models.labels import Adjudication, Assignment, Label, LabelingJob
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline


@dataclass(frozen=True, slots=True)
class LabelCount:
    """Labels, and the chats that they are on."""

    labels: int
    chats: int


def labels_of_text(criteria: Collection[Criterion]) -> LabelCount:
    """Count the labels to the current texts of these criteria: a new meaning retires them. One query."""
    labels = Label.objects.given().filter(version__in=_same_as_newest(criteria).values("pk"))
    counts = labels.aggregate(labels=Count("pk"), chats=Count("chat", distinct=True))
    return LabelCount(counts["labels"], counts["chats"])


def labels_of_earlier_text(version: CriterionVersion) -> LabelCount:
    """Count the labels to the text before a version, as it was meant: what a lead decides about."""
    versions = CriterionVersion.objects.filter(criterion=version.criterion_id)
    before = versions.filter(number__lt=version.number).latest("number")
    labels = Label.objects.given().filter(
        version__in=versions.filter(meaning=before.meaning, number__lt=version.number).values("pk")
    )
    counts = labels.aggregate(labels=Count("pk"), chats=Count("chat", distinct=True))
    return LabelCount(counts["labels"], counts["chats"])


def labelled_since(version: CriterionVersion | RubricGuideline) -> bool:
    """Whether a rater has submitted a label by this version of a text."""
    if isinstance(version, CriterionVersion):
        return Label.objects.given().filter(version=version).exists()
    read = Assignment.objects.filter(guideline=version, state=Assignment.State.SUBMITTED)
    changed = CriterionVersion.objects.filter(guideline_version=version)
    return read.exists() or Label.objects.given().filter(version__in=changed).exists()


def is_labelled(criterion: Criterion) -> bool:
    """Whether anybody has labelled the criterion, drafts included, or a lead has decided on it."""
    labels = Label.objects.filter(criterion=criterion)
    return labels.exists() or Adjudication.objects.filter(criterion=criterion).exists()


def is_asked(criterion: Criterion) -> bool:
    """Whether raters answer the criterion, or are to: it has labels, or is in a labelling job."""
    return is_labelled(criterion) or LabelingJob.objects.filter(criteria=criterion).exists()


def active_criteria(rubric_id: int) -> QuerySet[Criterion]:
    """Return the criteria that a rubric's guideline is about."""
    return Criterion.objects.filter(rubric=rubric_id, state=Criterion.State.ACTIVE)


def _same_as_newest(criteria: Collection[Criterion]) -> QuerySet[CriterionVersion]:
    """Return the versions that mean what the newest one of their criterion means."""
    versions = CriterionVersion.objects.filter(criterion__in=criteria).order_by()
    later = CriterionVersion.objects.filter(criterion=OuterRef("criterion"), number__gt=OuterRef("number"))
    newest = CriterionVersion.objects.filter(
        ~Exists(later), criterion=OuterRef("criterion"), meaning=OuterRef("meaning")
    )
    return versions.filter(Exists(newest))
