"""Which tables an archive of the workspace holds, which it leaves out and why, and their rows as JSON."""

import base64
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import IO, Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.migrations.loader import MigrationLoader
from django.db.models import Q, QuerySet

from alignment.archive.core import Manifest, Row, manifest_write, table_write
from alignment.models.archives import WorkspaceArchive
from alignment.models.certificates import Certificate
from alignment.models.experiments import Experiment
from alignment.models.reports import Report
from common.sql import one_moment
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Attempt, Run, Unit
from labeling.models.chats import Chat, Topic
from labeling.models.labels import Assignment
from labeling.models.people import User
from labeling.models.sampling import SamplePlan
from labeling.people.queries.visibility import to_label

ROWS_AT_ONCE = 1000
SHIPPED_PROFILES = 2  # of every workspace
OWN_APPS = ("common", "labeling", "evaluation", "alignment")
PAUSED = "Paused: this run came with an archive. Continue it to finish it here."
Tick = Callable[[int, int], None]
Change = Callable[[Row], None]


def _run(row: Row) -> None:
    """A run that is in work there must not spend money here by itself."""
    row["rung_at"] = None
    if row["state"] == Run.State.RUNNING:
        row["state"], row["error"] = Run.State.PAUSED.value, PAUSED


def _sample_plan(row: Row) -> None:
    """Pause it: the other workspace's chats and endpoints are its own."""
    row["state"] = SamplePlan.State.PAUSED.value


def _unit(row: Row) -> None:
    row["lease_id"] = None
    if row["state"] == Unit.State.LEASED:
        row["state"] = Unit.State.OPEN.value


def _attempt(row: Row) -> None:
    """Nobody will write the outcome of a request that is on its way."""
    if row["ended_at"] is None and row["batch_id"] is None:
        row["ended_at"], row["outcome"] = row["sent_at"], Attempt.Outcome.UNKNOWN.value


def _assignment(row: Row) -> None:
    row["lease_token"] = row["lease_expires_at"] = None
    if row["state"] == Assignment.State.LEASED:
        row["state"] = Assignment.State.OPEN.value


def _experiment(row: Row) -> None:
    row["lease_id"] = row["rung_at"] = None
    if row["state"] == Experiment.State.WORKING:
        row["state"] = Experiment.State.DUE.value


def _suggestion(row: Row) -> None:
    row["lease_id"] = row["rung_at"] = None
    if row["state"] in ("open", "asking"):
        row["state"] = "cancelled"


def _shared_reports() -> QuerySet[Any]:
    certified = Certificate.objects.values("report")
    return Report.objects.filter(Q(kind=Report.Kind.REPORT, shared=True) | Q(pk__in=certified))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the archive; without `columns` and `rows`, all of them. `change`: what each row loses."""

    name: str
    columns: tuple[str, ...] = ()
    rows: Callable[[], QuerySet[Any]] | None = None
    change: Change | None = None

    @property
    def model(self) -> type[models.Model]:
        """Return its model."""
        return apps.get_model(self.name)

    @property
    def fields(self) -> dict[str, "models.Field[Any, Any]"]:
        """Return its fields by column."""
        fields = {field.attname: field for field in self.model._meta.concrete_fields}
        return {name: fields[name] for name in self.columns or fields}

    def query(self) -> QuerySet[Any]:
        """Return the rows that belong in an archive."""
        return self.rows() if self.rows else self.model._base_manager.all()


# Accounts first: what points to them gets their ids of here. For the rest the order does not matter.
TABLES: tuple[Table, ...] = (
    Table("labeling.User", ("id", "username", "first_name", "last_name", "email", "date_joined")),
    Table("auth.Group", ("id", "name")),
    Table("labeling.User_groups", ("user_id", "group_id")),
    *map(Table, ("labeling.Workspace", "labeling.Rater")),
    *map(Table, ("labeling.Rubric", "labeling.RubricGuideline", "labeling.Dimension", "labeling.Criterion")),
    *map(Table, ("labeling.CriterionVersion", "labeling.CriterionLineage")),
    *map(Table, ("labeling.Topic", "labeling.Chat", "labeling.ChatSet", "labeling.ChatSetMember")),
    *map(Table, ("labeling.ChatWords", "labeling.SavedMapping")),
    *map(Table, ("labeling.LabelingJob", "labeling.LabelingJob_criteria", "labeling.LabelingJob_raters")),
    Table("labeling.Assignment", change=_assignment),
    *map(Table, ("labeling.Label", "labeling.LabelRevision", "labeling.Adjudication", "labeling.Consensus")),
    Table("labeling.RaterNote"),
    *map(Table, ("evaluation.PromptVersion", "evaluation.FewShotExample", "evaluation.Promotion")),
    *map(Table, ("evaluation.KnowledgeArticle", "evaluation.ArticleVersion", "evaluation.CriterionArticle")),
    *map(Table, ("evaluation.KnowledgeSnapshot", "evaluation.SnapshotItem")),
    *map(Table, ("evaluation.JudgeProfile", "evaluation.Judge", "evaluation.JudgePrompt")),
    Table("evaluation.Run", change=_run),
    Table("evaluation.RunChat"),
    Table("evaluation.Unit", change=_unit),
    *map(Table, ("evaluation.TextBlock", "evaluation.ModelCall", "evaluation.UnitCall", "evaluation.Batch")),
    Table("evaluation.Attempt", change=_attempt),
    *map(Table, ("evaluation.Verdict", "evaluation.DayCount", "evaluation.DayScore", "evaluation.Passage")),
    Table("labeling.SamplePlan", change=_sample_plan),
    *map(Table, ("labeling.SamplePlan_raters", "labeling.SamplePlan_criteria", "labeling.SampleDraw")),
    *map(Table, ("labeling.SampledChat", "evaluation.NightlyJudge", "evaluation.NightlyRun")),
    Table("alignment.Experiment", change=_experiment),
    *map(Table, ("alignment.ExperimentRun", "alignment.ExperimentMetric", "alignment.ExperimentVariant")),
    Table("alignment.ExperimentDay"),
    Table("alignment.Report", rows=_shared_reports),
    Table("alignment.Certificate"),
    *map(Table, ("alignment.Misalignment", "alignment.Sighting", "alignment.TriageChange")),
    *map(Table, ("alignment.Issue", "alignment.IssueWeek", "alignment.IssueChat")),
    *map(Table, ("alignment.MisalignmentCount", "alignment.PinnedChat", "alignment.RedesignProposal")),
    *map(Table, ("alignment.Policy", "alignment.RegressionTest", "alignment.ReleaseRequest")),
    *map(Table, ("alignment.AuditNight", "alignment.AuditCount", "alignment.HoldoutOpening")),
    *map(Table, ("alignment.AlertSettings", "alignment.WatchStep")),
    *map(Table, ("alignment.Alert", "alignment.AlertMute", "alignment.RateMark")),
    Table("alignment.Suggestion", change=_suggestion),
    *map(Table, ("alignment.SuggestionUse", "common.Comment")),
)
_PRIVATE = "a key or a password never leaves the workspace"
_UNSAVED = "unsaved work of one account on one page"
_WORK = "work in progress of the workers of here"
_RIGHTS = "rights are given anew by a lead of the other workspace"
_NEWS = "news for accounts that cannot sign in there yet"
_IMPORTED = "files of imports stay here; what they brought goes along"
_SENT = "requests to this installation's receivers; those of another one subscribe there"
_CACHE = "computed or asked again when it is needed"
_WATCH = "counts what happened at this installation"
LEFT_OUT: Mapping[str, str] = {
    "labeling.ApiToken": _PRIVATE,
    "labeling.Invitation": _RIGHTS,
    "labeling.AccountMail": "e-mails on their way from this installation",
    "account.EmailAddress": "addresses stand with their accounts",
    "account.EmailConfirmation": _PRIVATE,
    "evaluation.CallCount": _WATCH,
    "evaluation.WorkCounter": _WATCH,
    "labeling.DataImport": _IMPORTED,
    "labeling.ImportedRow": _IMPORTED,
    "evaluation.ConnectedEndpoint": _PRIVATE,
    "evaluation.WebhookEndpoint": _PRIVATE,
    "evaluation.OutboxEvent": _SENT,
    "evaluation.Delivery": _SENT,
    "alignment.CriterionDraft": _UNSAVED,
    "alignment.TopicPrompt": "asks endpoints of this installation; the topics that it gave go along",
    "alignment.IssueSettings": "asks endpoints of this installation",
    "alignment.TopicAnswer": "measures this installation's prompt; the topics that it gave go along",
    "labeling.IngestSettings": "each workspace decides what it redacts and keeps; its key never leaves it",
    "labeling.ChatSource": "counts of what systems sent to this workspace",
    "labeling.IngestRequest": "answers for the systems that send chats to this workspace",
    "labeling.AuditEvent": "the log says what happened in this workspace; the other one has its own",
    "labeling.User_user_permissions": _RIGHTS,
    "auth.Group_permissions": _RIGHTS,
    "auth.Permission": "made by each installation",
    "contenttypes.ContentType": "made by each installation",
    "sessions.Session": _PRIVATE,
    "usersessions.UserSession": _PRIVATE,
    "mfa.Authenticator": _PRIVATE,
    "socialaccount.SocialAccount": _PRIVATE,
    "socialaccount.SocialToken": _PRIVATE,
    "socialaccount.SocialApp": "single sign-on is set by each installation's environment",
    "common.CacheEntry": "counts of failed sign-ins of this installation",
    "admin.LogEntry": "the log of Django's own pages",
    "common.FormDraft": _UNSAVED,
    "evaluation.PromptDraft": _UNSAVED,
    "common.InboxItem": _NEWS,
    "common.InboxChoice": _NEWS,
    "evaluation.TextVector": _CACHE,
    "evaluation.EndpointModel": "learned by tests of this installation's endpoints",
    "evaluation.EndpointState": "limits and failures of this installation's endpoints",
    "evaluation.WorkerLease": _WORK,
    "evaluation.WorkerHeartbeat": _WORK,
    "alignment.ReportRefresh": _WORK,
    "alignment.IssueScan": _WORK,
    "alignment.IssueNaming": _WORK,
    "alignment.BaselineTraining": _WORK,
    "alignment.WorkspaceArchive": _WORK,
}


# ---------- out ----------


def archive_dump(target: IO[bytes], *, tick: Tick) -> Manifest:
    """Write the workspace of one moment to a file, in constant memory; nobody else has to wait.

    `tick(done, total)` is called with the number of rows, about every thousand.
    """
    with one_moment(), zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        counter = _Counter(sum(table.query().count() for table in TABLES), tick)
        tables = {
            table.name: table_write(archive, table.name, list(table.fields), counter.counted(_rows(table)))
            for table in TABLES
        }
        manifest = Manifest(
            product=settings.SOFTWARE,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            migrations=migrations_here(),
            tables=tables,
        )
        manifest_write(archive, manifest)
    return manifest


class _Counter:
    """Counts the rows that are written."""

    def __init__(self, total: int, tick: Tick) -> None:
        self.done, self.total, self.tick = 0, total, tick

    def counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows, and report about every thousandth."""
        for row in rows:
            if self.done % ROWS_AT_ONCE == 0:
                self.tick(self.done, self.total)
            self.done += 1
            yield row


def _rows(table: Table) -> Iterator[Row]:
    fields = table.fields
    for values in table.query().order_by("pk").values_list(*fields).iterator(ROWS_AT_ONCE):
        row = {name: plain_value(value) for name, value in zip(fields, values, strict=True)}
        if table.change:
            table.change(row)
        yield row


def plain_value(value: Any) -> Any:
    """Return a value of a column as JSON: times in ISO 8601, UTC; bytes in base64."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value


def migrations_here() -> dict[str, str]:
    """Return the newest migration of each app of ours."""
    return {app: name for app, name in MigrationLoader(None).graph.leaf_nodes() if app in OWN_APPS}


# ---------- the page ----------


def newest_archive() -> WorkspaceArchive | None:
    """Return the newest archive, made or in the making."""
    return WorkspaceArchive.objects.select_related("by").order_by("-pk").first()


def own_chats_to_label(user: User) -> int:
    """Return how many chats the user may still have to label: an archive would show the others' answers."""
    return Chat.objects.filter(pk__in=to_label(user=user)).count() if user.is_allowed("label_chats") else 0


# What every new workspace has, or gets by being signed in to; an archive takes its place.
SEEDED = {
    *("labeling.User", "auth.Group", "labeling.User_groups", "labeling.Workspace", "labeling.Rater"),
    *("labeling.Topic", "evaluation.JudgeProfile"),
}
# What says most about a workspace, one and several.
_NOUNS = {
    "labeling.Chat": ("chat", "chats"),
    "labeling.Criterion": ("criterion", "criteria"),
    "labeling.Rubric": ("rubric", "rubrics"),
    "evaluation.KnowledgeArticle": ("knowledge article", "knowledge articles"),
}


def obstacle() -> str:
    """Return what keeps this workspace from taking in an archive; "" for an empty workspace."""
    for name, nouns in _NOUNS.items():
        if count := apps.get_model(name)._base_manager.count():
            return f"it has {count:,} {nouns[count != 1]}"
    for table in TABLES:
        if table.name not in SEEDED and (count := table.model._base_manager.count()):
            return f"it has {count:,} {'row' if count == 1 else 'rows'} in the table {table.name}"
    if Topic.objects.exclude(key=Topic.UNKNOWN).exists():
        return "it has topics"
    if JudgeProfile.objects.count() > SHIPPED_PROFILES:
        return "it has judge profiles of its own"
    return ""


def groups_by_name() -> dict[str, int]:
    """Return the ids of the groups of here."""
    return dict(Group.objects.values_list("name", "pk"))
