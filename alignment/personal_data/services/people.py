"""Deletion of one person: account, sessions and texts. Labels stay under a pseudonym, so figures do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models import Q, QuerySet

from alignment.archive.worker import archive_path
from alignment.models.archives import WorkspaceArchive
from alignment.models.misalignments import TriageChange
from alignment.models.pins import PinnedChat
from alignment.models.reports import Report
from alignment.personal_data.queries.rows import Person, invitation_of, mails_to
from alignment.retention.services import DELETED
from common.models import Comment, FormDraft, InboxChoice, InboxItem
from common.overwrite import overwritten
from common.problems import InputProblem
from evaluation.models.outbox import OutboxEvent
from evaluation.models.prompts import PromptDraft
from labeling.ingest.services.chats import import_texts_delete
from labeling.models.imports import DataImport, ImportedRow
from labeling.models.ingest import IngestRequest
from labeling.models.labels import EXPIRED, Adjudication, Assignment, Label, LabelRevision, RaterNote
from labeling.models.people import ApiToken, Invitation, Rater, User
from labeling.models.sampling import SamplePlan
from labeling.people.services.audit import acting, audit, operator_name
from labeling.people.services.audit_texts import (
    event_names_replace,
    event_origins_delete,
    names_replaced,
)
from labeling.people.services.rights import check_manages

ACTIVE = "This account is active. Deactivate it first."


@dataclass(frozen=True, slots=True)
class PersonDeletion:
    """The pseudonym of a deleted person, and the labels that stay under it."""

    pseudonym: str
    labels: int


def person_erase(*, person: Person, by: User | None) -> PersonDeletion:
    """
    Delete what identifies a person, and what they wrote beside their answers.

    Answers, decisions, versions and the audit log stay under a pseudonym: agreement, reports and certificates
    are computed from them. `by`: None on the command line.

    Raises InputProblem for an active account and for a superuser's, unless a superuser asks.
    """
    user, rater = person.user, person.rater
    if user is not None and by is not None:
        check_manages(person=user, by=by)
    if user is not None and user.is_active:
        raise InputProblem(ACTIVE)
    with overwritten():
        pseudonym = person.pseudonym
        names = _names(person, pseudonym)
        if rater is not None:
            _erase_rater(rater, pseudonym)
        if user is not None:
            with acting(by or user):
                _erase_account(user, pseudonym)
        _replace_names(names)
        _delete_files(rater)
        labels = Label.objects.filter(rater=rater, state=Label.State.SUBMITTED).count() if rater else 0
        obj: models.Model | None = user or rater
        if obj is not None:
            _log("personal-data deleted", obj, pseudonym, by)
        return PersonDeletion(pseudonym, labels)


def person_exported(*, person: Person, by: User | None) -> None:
    """Log that somebody exported the data of a person."""
    obj: models.Model | None = person.user or person.rater
    if obj is not None:
        name = person.user.get_username() if person.user else str(person.rater)
        _log("personal-data exported", obj, name, by)


def _log(verb: str, obj: models.Model, name: str, by: User | None) -> None:
    audit(actor=by, verb=verb, obj=obj, user=name, **({} if by else {"operator": operator_name()}))


def _names(person: Person, pseudonym: str) -> dict[str, str]:
    """Return the texts that name the person, each with what replaces it."""
    names = dict.fromkeys(person.names, pseudonym)
    if person.rater:
        names[f"rater:{person.rater.name}"] = f"rater:{pseudonym}"
    return names


def _erase_rater(rater: Rater, pseudonym: str) -> None:
    revisions = LabelRevision.objects.filter(label__rater=rater)
    for rows in (Label.objects.filter(rater=rater), revisions):
        rows.exclude(rationale="").update(rationale="")
    notes = RaterNote.objects.filter(rater=rater)
    notes.exclude(text="").update(text=DELETED)
    skipped = Assignment.objects.filter(rater=rater).exclude(skip_reason__in=("", EXPIRED))
    skipped.update(skip_reason=DELETED)
    Rater.objects.filter(pk=rater.pk).update(name=pseudonym)


def _erase_account(user: User, pseudonym: str) -> None:
    own: tuple[QuerySet[Any], ...] = (
        FormDraft.objects.filter(user=user),
        InboxItem.objects.filter(user=user),
        InboxChoice.objects.filter(user=user),
        PinnedChat.objects.filter(author=user),
        IngestRequest.objects.filter(by=user),
        ApiToken.objects.filter(user=user),
        mails_to(user),
        EmailAddress.objects.filter(user=user),
        Authenticator.objects.filter(user=user),
        SocialAccount.objects.filter(user=user),
        UserSession.objects.filter(user=user),
        LogEntry.objects.filter(user=user),
        Session.objects.filter(pk__in=list(_sessions(user))),
    )
    for rows in own:
        rows.delete()
    PromptDraft._base_manager.filter(author=user).update(ended=True, text="", examples=[])
    Comment.objects.filter(by=user).update(text=DELETED)
    Adjudication.objects.filter(by=user).update(by_name=pseudonym)
    for change in TriageChange.objects.filter(by=user):
        _delete_note(change)
    Invitation.objects.filter(invitation_of(user)).update(name="", email="")
    about = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(User), object_id=str(user.pk)
    )
    about.update(object_repr=pseudonym, change_message="")
    for plan in SamplePlan.objects.filter(raters=user):
        plan.raters.remove(user)
    event_origins_delete(of=user)
    user.groups.clear()
    user.user_permissions.clear()
    stored = User.objects.get(pk=user.pk)
    stored.username, stored.first_name, stored.last_name, stored.email = pseudonym, "", "", ""
    stored.last_login = stored.last_seen_at = None
    stored.is_staff = stored.is_superuser = False
    stored.set_unusable_password()
    stored.save()


def _delete_note(change: TriageChange) -> None:
    for values in (change.was, change.now):
        if values.get("note"):
            values["note"] = DELETED
    change.save(update_fields=["was", "now"])


def _sessions(user: User) -> Iterator[str]:
    """Yield the keys of all sessions of an account, also of those that are over."""
    for one in Session.objects.iterator():
        if one.get_decoded().get(SESSION_KEY) == str(user.pk):
            yield one.pk


def _replace_names(names: Mapping[str, str]) -> None:
    """Replace the names where they were copied as text: log, documents, events, mentions."""
    event_names_replace(names)
    Adjudication.objects.filter(by_name__in=names).update(by_name=next(iter(names.values())))
    for report in Report.objects.only("against", "body").iterator(100):
        body = names_replaced(report.body, names)
        against = names.get(report.against, report.against)
        if body != report.body or against != report.against:
            Report.objects.filter(pk=report.pk).update(body=body, against=against)
    for change in TriageChange.objects.iterator(500):
        was, now = names_replaced(change.was, names), names_replaced(change.now, names)
        if (was, now) != (change.was, change.now):
            TriageChange.objects.filter(pk=change.pk).update(was=was, now=now)
    for event in OutboxEvent.objects.only("payload").iterator(500):
        payload = names_replaced(event.payload, names)
        if payload != event.payload:
            OutboxEvent.objects.filter(pk=event.pk).update(payload=payload)
    for name, pseudonym in names.items():
        for comment in Comment.objects.filter(text__icontains=f"@{name}"):
            text = comment.text.replace(f"@{name}", f"@{pseudonym}")
            Comment.objects.filter(pk=comment.pk).update(text=text)


def _delete_files(rater: Rater | None) -> None:
    """Delete archives of the workspace, and the files of imports that brought the person's labels."""
    for archive in WorkspaceArchive.objects.filter(state=WorkspaceArchive.State.DONE):
        archive_path(archive.pk).unlink(missing_ok=True)
        archive.delete()
    if rater is None:
        return
    labels = Label.objects.filter(rater=rater).values("pk")
    notes = RaterNote.objects.filter(rater=rater).values("pk")
    kept = ImportedRow.objects.filter(
        Q(model=Rater._meta.label_lower, object_id=rater.pk)
        | Q(model=Label._meta.label_lower, object_id__in=labels)
        | Q(model=RaterNote._meta.label_lower, object_id__in=notes)
    )
    import_texts_delete(
        DataImport.objects.filter(pk__in=list(kept.values_list("data_import", flat=True).distinct()))
    )
    kept.exclude(after=None).update(after=None)
    kept.exclude(before=None).update(before={})
