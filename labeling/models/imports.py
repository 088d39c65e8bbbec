"""Imports by a page: the file, what its columns are, what was found and what was written."""

import uuid
from pathlib import Path
from typing import Self

from django.conf import settings
from django.db import models

from labeling.models.people import User

PROBLEMS_STORED = 2000


class DataImportQuerySet(models.QuerySet["DataImport"]):
    """Filters of imports."""

    def at_work(self) -> Self:
        """Return the imports that a worker checks or writes, or should."""
        undoing = models.Q(state=DataImport.State.DONE, options__has_key=DataImport.UNDOING)
        return self.filter(
            models.Q(state__in=(DataImport.State.CHECKING, DataImport.State.IMPORTING)) | undoing
        )

    def writing_to(self, chat_set: str) -> Self:
        """Return the imports that are at work on the chats of this set."""
        at_work = self.at_work().exclude(state=DataImport.State.CHECKING)
        return at_work.filter(kind__in=DataImport.CHAT_KINDS, options__set=chat_set)


class DataImport(models.Model):
    """One file that a lead brings, from its upload to the rows that it became."""

    CHAT_KINDS = ("chats", "langfuse", "otel")
    UNDOING = "undoing"  # the option with the id of who undoes the import, while a worker does it

    class State(models.TextChoices):
        DRAFT = "draft", "Columns to choose"
        CHECKING = "checking", "Checking"
        CHECKED = "checked", "Checked"
        IMPORTING = "importing", "Importing"
        DONE = "done", "Imported"
        UNDONE = "undone", "Undone"

    # Names its folder: two workspaces on one machine may share the folder of all imports.
    key = models.UUIDField(default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=20)
    file_name = models.CharField(max_length=200)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    # How the file is read: {"format": "csv", "encoding": …, "delimiter": …, "list_name": …}.
    source = models.JSONField(default=dict)
    # [{"name": …, "example": …, "words": […]}], from the first rows.
    columns = models.JSONField(default=list)
    # {"columns": {name: field}, "speakers": {word: role}}.
    mapping = models.JSONField(default=dict)
    # Target set, rubric, splits, names that stand for missing columns, whether wrong rows are left out.
    options = models.JSONField(default=dict)
    state = models.CharField(max_length=9, choices=State.choices, default=State.DRAFT)
    lines = models.PositiveIntegerField(default=0)
    problem_count = models.PositiveIntegerField(default=0)
    # Whether the file cannot be read to its end: then no part of it is imported.
    unreadable = models.BooleanField(default=False)
    # [{"number": 3, "field": …, "message": …}], the first PROBLEMS_STORED by number.
    problems = models.JSONField(default=list)
    # {"created": 1, "unchanged": 2, "updated": 3, "ignored": {…}, "notes": […]}: expected, then written.
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True, default="")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    rung_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    # When the file and the examples of its content were deleted.
    text_deleted_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    objects = DataImportQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["state"],
                name="import_at_work",
                condition=models.Q(state__in=["checking", "importing"]),
            )
        ]

    def __str__(self) -> str:
        return self.file_name

    @property
    def undoing(self) -> bool:
        """Whether a worker takes the import back, or should."""
        return self.state == self.State.DONE and self.UNDOING in self.options

    @property
    def folder(self) -> Path:
        """The folder with the file and what is made of it."""
        return Path(settings.IMPORT_DIR) / self.key.hex

    @property
    def path(self) -> Path:
        """The file as it was sent."""
        return self.folder / "upload"

    @property
    def lines_path(self) -> Path:
        """The checked lines, as the commands read them; it has the name of the file, for messages."""
        return self.folder / "lines" / self.file_name


class ImportedRow(models.Model):
    """A row that an import created (`before` is null) or changed, so that the import can be undone."""

    data_import = models.ForeignKey(DataImport, on_delete=models.CASCADE, related_name="rows")
    model = models.CharField(max_length=60)
    object_id = models.BigIntegerField()
    before = models.JSONField(null=True, blank=True)
    # Other values in these fields mean that somebody changed the row after the import.
    after = models.JSONField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["data_import", "model"], name="importedrow_model")]

    def __str__(self) -> str:
        return f"{self.model} {self.object_id}"


class SavedMapping(models.Model):
    """What the columns of a file were, for the next file with the same columns."""

    kind = models.CharField(max_length=20)
    signature = models.CharField(max_length=64)
    mapping = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    used_at = models.DateTimeField(auto_now=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "signature"], name="savedmapping_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.signature[:8]}"
