"""Versions of texts for raters and differences between two of them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.urls import reverse

from common.diff import Part, word_diff
from common.inbox.subjects import Subject
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline

Version = TypeVar("Version", RubricGuideline, CriterionVersion)

# The texts of a criterion version, in the order in which a rater reads them.
TEXTS = {
    "question": "Question",
    "definition": "Definition",
    "guideline": "Guideline",
    "true_example": "Example of True",
    "false_example": "Example of False",
}


@dataclass(frozen=True, slots=True)
class TextChange:
    """The diff of one text between two versions."""

    name: str
    parts: tuple[Part, ...]


def guideline_versions(*, rubric: Rubric) -> list[RubricGuideline]:
    """Return all versions of a rubric's guideline, newest first."""
    return list(rubric.guidelines.select_related("created_by", "wording_by").order_by("-number"))


def criterion_versions(*, criterion: Criterion) -> list[CriterionVersion]:
    """Return all versions of a criterion, newest first."""
    return list(criterion.versions.select_related("created_by", "wording_by").order_by("-number"))


def text_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these versions of criterion texts that the user may open."""
    rows = CriterionVersion.objects.filter(pk__in=ids).select_related("criterion")
    urls = [(row, reverse("labeling:criterion_text", args=[row.criterion.key])) for row in rows]
    return {row.pk: _subject(row, row.criterion.name, url) for row, url in urls if _writes(user)}


def guideline_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these versions of guidelines that the user may open."""
    rows = RubricGuideline.objects.filter(pk__in=ids).select_related("rubric")
    urls = [(row, reverse("labeling:guideline_detail", args=[row.rubric_id])) for row in rows]
    return {row.pk: _subject(row, row.rubric.name, url) for row, url in urls if _writes(user)}


def _writes(user: User) -> bool:
    return user.has_perm("labeling.edit_prompts")


def _subject(row: CriterionVersion | RubricGuideline, name: str, url: str) -> Subject:
    people = (row.created_by_id,) if row.created_by_id else ()
    return Subject(title=f"texts for raters of {name}, version {row.number}", url=url, people=people)


@dataclass(frozen=True, slots=True)
class Pair(Generic[Version]):
    """Two versions to compare."""

    old: Version
    new: Version


def two_of(versions: Iterable[Version], *, old: str, new: str) -> Pair[Version] | None:
    """Return the versions of these numbers; None where one does not exist."""
    by_number = {str(row.number): row for row in versions}
    return Pair(by_number[old], by_number[new]) if old in by_number and new in by_number else None


def guideline_diff(old: RubricGuideline | None, new: RubricGuideline) -> tuple[Part, ...]:
    """Return the diff between two versions of a guideline."""
    return word_diff(old.text if old else "", new.text)


def criterion_diff(old: CriterionVersion, new: CriterionVersion) -> list[TextChange]:
    """Return the diffs of the texts that differ between two versions of a criterion."""
    return [
        TextChange(words, word_diff(getattr(old, name), getattr(new, name)))
        for name, words in TEXTS.items()
        if getattr(old, name) != getattr(new, name)
    ]
