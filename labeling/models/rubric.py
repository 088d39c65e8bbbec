"""Rubric, dimensions, criteria and their versions."""

from typing import Any

from django.core.validators import RegexValidator
from django.db import models

from labeling.models.people import User


class Rubric(models.Model):
    """A named set of criteria."""

    name = models.CharField(max_length=120)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="rubric_name")]

    def __str__(self) -> str:
        return self.name


class TextVersion(models.Model):
    """An immutable version of a text for raters, and whether its change was one of wording only."""

    class Wording(models.TextChoices):
        ASKED = "asked", "Wording only: a lead has to confirm it"
        CONFIRMED = "confirmed", "Wording only"
        REFUSED = "refused", "New meaning"

    number = models.PositiveIntegerField()
    reason = models.TextField(blank=True, default="")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    # "": nobody says that only the wording changed.
    wording = models.CharField(max_length=9, choices=Wording.choices, blank=True, default="")
    # The lead who confirmed or refused it.
    wording_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        abstract = True


class RubricGuideline(TextVersion):
    """An immutable text for raters about the whole rubric; the newest one is current."""

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="guidelines")
    text = models.TextField()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["rubric", "number"], name="rubricguideline_number")]

    def __str__(self) -> str:
        return f"{self.rubric_id} v{self.number}"


class Dimension(models.Model):
    """One of the five dimensions that criteria are grouped by."""

    key = models.CharField(max_length=64)
    name = models.CharField(max_length=120)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["key"], name="dimension_key")]

    def __str__(self) -> str:
        return self.name


class Tier(models.TextChoices):
    """The difficulty of a criterion for the judge."""

    SIMPLE = "simple", "simple"
    CONTEXT = "context", "context"
    SUBJECTIVE = "subjective", "subjective"


class Criterion(models.Model):
    """A yes/no question of the rubric; its text lives in its versions."""

    class State(models.TextChoices):
        ACTIVE = "active", "Active"
        RETIRED = "retired", "Retired"

    class Articles(models.TextChoices):
        ALL = "all", "Every article"
        LISTED = "listed", "Listed articles"

    key = models.CharField(max_length=64, validators=[RegexValidator(r"^[a-z][a-z0-9_]*$")])
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="criteria")
    dimension = models.ForeignKey(Dimension, on_delete=models.PROTECT, related_name="criteria")
    tier = models.CharField(max_length=10, choices=Tier.choices)
    critical = models.BooleanField(default=False)
    position = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=8, choices=State.choices, default=State.ACTIVE)
    articles = models.CharField(max_length=6, choices=Articles.choices, default=Articles.LISTED)
    # A failing answer needs evidence before its chat can be submitted.
    evidence_on_fail = models.BooleanField(default=False)
    # Raised by every transaction that changes human labels or the clusters of chats: reports detect staleness
    # without a scan.
    labels_seq = models.BigIntegerField(default=0)
    # Who looks after its prompt and its disagreements.
    owner = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["key"], name="criterion_key")]

    def __str__(self) -> str:
        return self.key

    @property
    def name(self) -> str:
        """Return the key as readable words."""
        return self.key.replace("_", " ").capitalize()


class CriterionVersion(TextVersion):
    """An immutable text of a criterion; the newest one is current."""

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="versions")
    question = models.TextField()
    definition = models.TextField()
    guideline = models.TextField(blank=True, default="")
    true_example = models.TextField(blank=True, default="")
    false_example = models.TextField(blank=True, default="")
    passes_when = models.BooleanField(default=True)
    allow_na = models.BooleanField(default=False)
    # Of what raters and judge are asked: part of the judge's identity.
    content_hash = models.CharField(max_length=64)
    # Labels to versions with the same meaning count together (labeling/rubric/core/meaning.py).
    meaning = models.CharField(max_length=64)
    # The rubric's guideline that gave the question a new meaning, if that was the change.
    guideline_version = models.ForeignKey(
        RubricGuideline, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["criterion", "number"], name="criterionversion_number")
        ]

    def __str__(self) -> str:
        return f"{self.criterion_id} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; without another meaning a version means what it asks."""
        self.meaning = self.meaning or self.content_hash
        super().save(*args, **kwargs)

    def asks_as(self, other: "CriterionVersion") -> bool:
        """Whether judge and raters answer the same question if one reads this version, one the other."""
        return self.content_hash == other.content_hash or self.meaning == other.meaning


class CriterionLineage(models.Model):
    """A criterion that replaced a retired one; append-only."""

    class Kind(models.TextChoices):
        SPLIT = "split", "Split"
        MERGE = "merge", "Merged"
        REPLACE = "replace", "Replaced"

    old = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    new = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=7, choices=Kind.choices)
    # Whether labels of the old criterion carried over to the new one.
    carries_labels = models.BooleanField(default=False)
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["old", "new"], name="lineage_once"),
            models.CheckConstraint(condition=~models.Q(old=models.F("new")), name="lineage_of_two"),
        ]

    def __str__(self) -> str:
        return f"{self.old_id} → {self.new_id}"
