"""Issues: owner, state, note and name; their chats for a set or raters; events; names by a model; scans."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from alignment.issues.core.naming import LONGEST_NAME, naming_messages, room_for_name
from alignment.issues.queries.issues import IssueFilter, chats_of, issue_list, naming_material
from alignment.issues.queries.texts import monday
from alignment.issues.worker.embedding import embedding_plan
from alignment.issues.worker.naming import NAMINGS, ROLE
from alignment.issues.worker.scan import scan_open
from alignment.models.issues import Issue, IssueNaming, IssueScan, IssueSettings
from alignment.prompts.suggestions.services import judge_model, request_json, writing_request
from common.inbox.services import Kind, inbox_add
from common.inbox.subjects import subjects_open_to
from common.problems import FieldProblem, InputProblem
from evaluation.core.types import Request
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.judges.queries.profiles import default_profile
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.models.outbox import EventKind, WebhookEndpoint
from evaluation.outbox.services import outbox_publish
from evaluation.runs.worker.single_calls import question_key
from labeling.models.chats import Split
from labeling.models.people import User, Workspace
from labeling.models.rubric import CriterionVersion
from labeling.people.services.audit import audit
from labeling.sets.services import AddedChats, chats_add

LONGEST_NOTE = 4_000
MOST_CHATS = 500  # sent to a set at once
MOST_WEEKS = 26  # clustered on one request


class ChangedMeanwhile(InputProblem):
    """The issue changed after the user read it, so the change was rejected."""


@dataclass(frozen=True, slots=True)
class IssueChange:
    """Values to store; None keeps the stored one. `owner` is a username, "" for none."""

    state: str | None = None
    owner: str | None = None
    note: str | None = None
    name: str | None = None


@transaction.atomic
def issue_change(*, issue: Issue, change: IssueChange, seen: int, by: User) -> Issue:
    """Store a change and log it. An issue marked fixed reopens when it occurs in a later week.

    `seen` is the revision that the user read. Raises ChangedMeanwhile, and FieldProblem by field.
    """
    row = _locked(issue)
    if row.revision != seen:
        who = row.changed_by.username if row.changed_by else "somebody"
        raise ChangedMeanwhile(f"{who} changed this issue meanwhile; your change was not saved")
    was = _values(row)
    if change.state is not None:
        _set_state(row, change.state)
    if change.owner is not None:
        row.owner = _owner(change.owner, row)
    if change.note is not None:
        row.note = _text("note", change.note, LONGEST_NOTE)
    if change.name is not None and change.name.strip() != row.name:
        row.name, row.name_by = _text("name", change.name, LONGEST_NAME), Issue.NameBy.PERSON
        if not row.name:
            raise FieldProblem("name", "must not be empty")
    now = _values(row)
    changed = sorted(name for name in now if now[name] != was[name])
    if changed:
        _touch(row, by)
        # NB: the log keeps no text that may quote a chat.
        values = {name: now[name] for name in ("state", "owner") if name in changed}
        audit(actor=by, verb="issue changed", obj=row, changed=changed, **values)
        if "owner" in changed and row.owner:
            inbox_add(users=[row.owner], kind=Kind.ASSIGNED, subject=f"issue:{row.pk}", by=by)
    return row


def _locked(issue: Issue) -> Issue:
    rows = Issue.objects.select_for_update(of=("self",)).select_related("changed_by", "owner", "criterion")
    return rows.get(pk=issue.pk)


def _touch(row: Issue, by: User) -> None:
    row.revision, row.changed_by, row.changed_at = row.revision + 1, by, timezone.now()
    row.save()


def _values(row: Issue) -> dict[str, str]:
    owner = row.owner.username if row.owner else ""
    return {"state": str(row.state), "owner": owner, "note": row.note, "name": row.name}


def _set_state(row: Issue, state: str) -> None:
    if state not in Issue.State.values:
        raise FieldProblem("state", f"must be one of {', '.join(Issue.State.values)}")
    if state == row.state:
        return
    row.state = Issue.State(state)
    fixed = state == Issue.State.FIXED
    row.fixed_week = max(monday(timezone.localdate()), row.last_week or date.min) if fixed else None
    row.returned = False


def _owner(name: str, row: Issue) -> User | None:
    if not name:
        return None
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None or not user.has_perm("labeling.edit_prompts"):
        raise FieldProblem("owner", "must be an active user who may edit prompts")
    if f"issue:{row.pk}" not in subjects_open_to(user, [f"issue:{row.pk}"]):
        raise FieldProblem("owner", f"{name} cannot open this issue")
    return user


def _text(field: str, text: str, longest: int) -> str:
    text = text.replace("\r\n", "\n").strip()
    if len(text) > longest:
        raise FieldProblem(field, f"has more than {longest:,} characters")
    return text


# ---------- chats and events ----------


@transaction.atomic
def issue_to_set(*, issue: Issue, name: str, new: bool, most: int, split: str, by: User) -> AddedChats:
    """Add the issue's newest chats, the most typical of a week first, to a chat set.

    Raises InputProblem, as `chats_add` does, and where no chat is left with its text.
    """
    rows = chats_of(issue, user=by).filter(chat__text_deleted_at=None)
    chats = list(rows.values_list("chat", flat=True)[: min(most, MOST_CHATS)])
    if not chats:
        raise InputProblem("No chat of this issue that you can read still has its text.")
    rubric = issue.criterion.rubric
    return chats_add(name=name.strip(), new=new, rubric=rubric, chats=chats, split=split, by=by)


def issue_for_raters(*, issue: Issue, name: str, most: int, by: User) -> AddedChats:
    """Put the issue's chats into a new set of their own, for a labelling job. Raises InputProblem."""
    return issue_to_set(issue=issue, name=name, new=True, most=most, split=Split.DEV, by=by)


@transaction.atomic
def issue_report(*, issue: Issue, address: str, by: User) -> None:
    """Publish the issue as an event for webhooks. Raises InputProblem where no webhook receives it.

    `address` is the page of the issue. NB: an event holds no text of a chat, so no name made of terms.
    """
    receivers = WebhookEndpoint.objects.filter(active=True).values_list("kinds", flat=True)
    if not any(EventKind.ISSUE in kinds for kinds in receivers):
        raise InputProblem("no webhook receives issue.reported: add the kind to a webhook first")
    row = _locked(issue)
    outbox_publish(kind=EventKind.ISSUE, payload=_payload(row, address, by))
    _touch(row, by)
    audit(actor=by, verb="issue reported", obj=row)


def _payload(row: Issue, address: str, by: User) -> Mapping[str, Any]:
    found = issue_list(only=IssueFilter(state="all"), user=by)
    line = next(one for one in found.rows if one.issue.pk == row.pk)
    chats = chats_of(row, user=by).values_list("chat__external_id", flat=True)
    return {
        "issue": row.pk,
        "name": row.name if row.name_by == Issue.NameBy.PERSON else None,
        "criterion": row.criterion.key,
        "topic": line.issue.topic.key,
        "state": str(row.state),
        "owner": row.owner.username if row.owner else None,
        "first_week": row.first_week.isoformat() if row.first_week else None,
        "last_week": row.last_week.isoformat() if row.last_week else None,
        "weeks": [{"week": one.week.isoformat(), "chats": one.chats} for one in line.trend],
        "chat_ids": list(chats[:20]),
        "url": address,
        "reported_by": by.username,
    }


# ---------- names by the judge's model ----------


def naming_prepare(*, issue: Issue, by: User) -> tuple[Request, list[int]]:
    """Return the request as it would be sent now, and the chats in it. Raises InputProblem."""
    chats, texts, terms = naming_material(issue, user=by)
    if not texts:
        raise InputProblem("no rationale of this issue is stored any more")
    spec, at = judge_model(default_profile())
    version = CriterionVersion.objects.filter(criterion=issue.criterion_id).order_by("-number").first()
    messages = naming_messages(
        question=version.question if version else issue.criterion.name,
        terms=terms,
        rationales=texts,
        fence_secret=bytes(Workspace.current().fence_secret),
    )
    return writing_request(role=ROLE, messages=messages, room=room_for_name, choice=spec, at=at), chats


@transaction.atomic
def naming_start(*, issue: Issue, by: User, anew: bool = False) -> IssueNaming:
    """Store a request for a name and enqueue it; the same material finds its stored answer.

    Raises InputProblem, also while a name is asked for already.
    """
    row = _locked(issue)
    profiles_ensure()
    if row.namings.filter(state__in=(IssueNaming.State.OPEN, IssueNaming.State.ASKING)).exists():
        raise InputProblem("a name is asked for already: wait for it or cancel it")
    request, chats = naming_prepare(issue=row, by=by)
    question = question_key(request)
    same = IssueNaming.objects.filter(question=question).order_by("-sample").first()
    sample = 0 if same is None else same.sample + int(anew)
    naming = IssueNaming.objects.create(
        issue=row,
        by=by,
        model=request.model,
        chats=chats,
        request=request_json(replace(request, sample=sample)),
        question=question,
        sample=sample,
    )
    audit(actor=by, verb="issue name asked", obj=row, model=naming.model)
    transaction.on_commit(partial(NAMINGS.enqueue, naming.pk))
    return naming


@transaction.atomic
def naming_cancel(*, naming: IssueNaming) -> None:
    """Cancel an open request; an answer in flight is still stored and paid for."""
    row = IssueNaming.objects.select_for_update(of=("self",)).get(pk=naming.pk)
    if row.is_open:
        row.state, row.finished_at = IssueNaming.State.CANCELLED, timezone.now()
        row.save(update_fields=["state", "finished_at"])


# ---------- scans ----------


@transaction.atomic
def scan_request(*, first: date, last: date, by: User) -> list[IssueScan]:
    """Cluster the weeks of a period again, the earliest first. Raises FieldProblem for a wrong period."""
    if last < first:
        raise FieldProblem("last", "must not be before the first day")
    start, end = monday(first), monday(min(last, timezone.localdate()))
    count = (end - start).days // 7 + 1
    if count < 1:
        raise FieldProblem("first", "must not be in the future")
    if count > MOST_WEEKS:
        raise FieldProblem("last", f"the period has {count} weeks: choose at most {MOST_WEEKS}")
    scans = [scan_open(start + timedelta(weeks=number)) for number in range(count)]
    IssueScan.objects.filter(pk__in=[one.pk for one in scans]).update(by=by)
    audit(actor=by, verb="issues clustered", obj=scans[0], first=start.isoformat(), weeks=count)
    return scans


# ---------- how failing chats are compared ----------


@transaction.atomic
def grouping_change(*, values: Mapping[str, Any], by: User) -> IssueSettings:
    """Set endpoint, embedding model and budget, and log the changed ones; stored issues stay.

    Raises FieldProblem for an endpoint that cannot be asked, and for a budget without a known price.
    """
    IssueSettings.objects.get_or_create(id=1)
    row = IssueSettings.objects.select_for_update(of=("self",)).get()
    names = ("endpoint", "embedding_model", "budget_usd")
    changed = {name: values[name] for name in names if name in values and getattr(row, name) != values[name]}
    for name, value in changed.items():
        setattr(row, name, value)
    if row.embedding_model:
        try:
            embedding_plan(row)
        except (InputProblem, EmbeddedModelError) as problem:
            raise FieldProblem("endpoint", str(problem)) from None
    if changed:
        row.changed_by = by
        row.save(update_fields=[*changed, "changed_by"])
        audit(actor=by, verb="settings changed", obj=row, **{key: str(one) for key, one in changed.items()})
    return row
