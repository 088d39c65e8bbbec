"""Which rows hold data about one chat or one person, in every table."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone

from alignment.archive.queries import OWN_APPS, plain_value
from alignment.models.issues import Issue, IssueChat, IssueNaming, IssueWeek
from alignment.models.misalignments import Misalignment, Sighting, TriageChange
from alignment.models.pins import PinnedChat
from alignment.models.suggestions import Suggestion, SuggestionUse
from alignment.retention.queries import calls_about
from common.models import Comment, FormDraft, InboxChoice, InboxItem
from evaluation.models.outbox import Delivery, OutboxEvent
from evaluation.models.prompts import PromptDraft
from evaluation.models.runs import Attempt, ModelCall, Passage, TextBlock, UnitCall
from labeling.models.chats import Chat
from labeling.models.imports import DataImport, ImportedRow
from labeling.models.labels import Adjudication, Assignment, Label, LabelRevision, RaterNote
from labeling.models.people import AccountMail, ApiToken, AuditEvent, Invitation, Rater, User

Rows = Mapping[str, QuerySet[Any]]
ROWS_AT_ONCE = 500
# Keys, and what would let somebody sign in: no export holds them.
SECRET = {"password", "digest", "session_key", "data", "token", "token_secret", "key"}


@dataclass(frozen=True, slots=True)
class Person:
    """An account, a rater, or both: whose data it is."""

    user: User | None
    rater: Rater | None

    @property
    def names(self) -> frozenset[str]:
        """Return the texts that name the person."""
        found = {self.rater.name} if self.rater else set()
        if self.user:
            found |= {self.user.username, self.user.email, self.user.get_full_name()}
        return frozenset(name for name in found if name)

    @property
    def title(self) -> str:
        """Return the name for pages."""
        if self.user:
            return self.user.get_full_name() or self.user.get_username()
        return str(self.rater)

    @property
    def deleted(self) -> bool:
        """Whether the person is a pseudonym already."""
        if self.user:
            return not self.user.is_active and self.user.username == self.pseudonym
        return self.rater is not None and self.rater.name == self.pseudonym

    @property
    def pseudonym(self) -> str:
        """Return the name under which a deleted person's answers stay."""
        if self.user:
            return f"deleted-{self.user.pk}"
        return f"deleted-rater-{self.rater.pk if self.rater else 0}"


def person_of(*, user: User | None = None, rater: Rater | None = None) -> Person:
    """Return the person with both sides, account and rater."""
    if user is not None:
        return Person(user, Rater.objects.filter(user=user).first())
    return Person(rater.user if rater else None, rater)


# ---------- a chat ----------


def chat_rows(chat: Chat) -> Rows:
    """Return the rows about a chat, by the name of their table; reading them deletes nothing."""
    calls = calls_of(chat)
    asked = ModelCall.objects.filter(pk__in=calls)
    sent = asked.values_list("parts", flat=True)
    blocks = {digest for parts in sent for _, row in parts for digest in row}
    labels = Label.objects.filter(chat=chat).values("pk")
    items = Misalignment.objects.filter(chat=chat).values("pk")
    issues = IssueChat.objects.filter(chat=chat).values("issue")
    events = OutboxEvent.objects.filter(payload__chat_id=chat.external_id)
    subjects = chat_subjects(chat)
    direct = {model._meta.label: model._base_manager.filter(**{name: chat}) for model, name in _related(Chat)}
    return {
        "labeling.Chat": Chat.objects.filter(pk=chat.pk),
        **direct,
        "labeling.LabelRevision": LabelRevision.objects.filter(label__in=labels),
        "evaluation.ModelCall": asked,
        "evaluation.TextBlock": TextBlock.objects.filter(pk__in=blocks),
        "evaluation.UnitCall": UnitCall.objects.filter(unit__chat=chat),
        "evaluation.Attempt": Attempt.objects.filter(Q(unit__chat=chat) | Q(call__in=calls)),
        "evaluation.Passage": Passage.objects.filter(unit__chat=chat),
        "evaluation.OutboxEvent": events,
        "evaluation.Delivery": Delivery.objects.filter(event__in=events),
        "evaluation.PromptDraft": PromptDraft._base_manager.filter(pk__in=_drafts_with(chat)),
        "alignment.TriageChange": TriageChange.objects.filter(misalignment__in=items),
        "alignment.Sighting": Sighting.objects.filter(misalignment__in=items),
        "alignment.Suggestion": Suggestion.objects.filter(pk__in=suggestions_with(chat)),
        "alignment.SuggestionUse": SuggestionUse.objects.filter(pk__in=_uses_with(chat)),
        "alignment.Issue": Issue.objects.filter(pk__in=issues),
        "alignment.IssueWeek": IssueWeek.objects.filter(issue__in=issues),
        "alignment.IssueNaming": IssueNaming.objects.filter(issue__in=issues),
        "common.Comment": Comment.objects.filter(subject__in=subjects),
        "common.InboxItem": InboxItem.objects.filter(subject__in=subjects),
        "common.FormDraft": FormDraft.objects.filter(pk__in=form_drafts_about(chat)),
        "labeling.ImportedRow": imported_rows(chat),
        "labeling.DataImport": DataImport.objects.filter(pk__in=imported_rows(chat).values("data_import")),
        "labeling.AuditEvent": AuditEvent.objects.filter(events_about(chat)),
    }


def calls_of(chat: Chat) -> set[int]:
    """Return the ids of the model calls that read a chat."""
    asked = Suggestion.objects.filter(pk__in=suggestions_with(chat)).exclude(call=None)
    named = IssueNaming.objects.exclude(call=None).exclude(chats=[]).only("chats", "call")
    return {
        *(copy.id for copy in calls_about([chat])),
        *asked.values_list("call", flat=True),
        *(row.call_id for row in named if row.call_id and chat.pk in row.chats),
    }


def suggestions_with(chat: Chat) -> list[int]:
    """Return the suggestions whose request or answer may hold text of a chat."""
    rows = Suggestion.objects.order_by("pk").only("material").iterator(ROWS_AT_ONCE)
    return [row.pk for row in rows if chat.pk in row.told_chat_ids]


def _drafts_with(chat: Chat) -> list[int]:
    rows = PromptDraft._base_manager.exclude(examples=[]).values_list("pk", "examples")
    return [pk for pk, examples in rows if has_example(examples, chat)]


def _uses_with(chat: Chat) -> list[int]:
    rows = SuggestionUse.objects.exclude(replaced=None).values_list("pk", "replaced")
    return [pk for pk, replaced in rows if has_example((replaced or {}).get("examples", []), chat)]


def has_example(examples: Iterable[Any], chat: Chat) -> bool:
    """Whether one of the examples of a draft is from this chat."""
    return any(isinstance(one, dict) and one.get("chat") == chat.external_id for one in examples)


def chat_subjects(chat: Chat) -> list[str]:
    """Return the subjects of comments about a chat."""
    notes = RaterNote.objects.filter(chat=chat).values_list("pk", flat=True)
    items = Misalignment.objects.filter(chat=chat).values_list("pk", flat=True)
    return [*(f"note:{pk}" for pk in notes), *(f"disagreement:{pk}" for pk in items)]


def form_drafts_about(chat: Chat) -> list[int]:
    """Return the drafts of forms on pages about a chat: their key begins with the page's address."""
    assignments = Assignment.objects.filter(chat=chat).values_list("pk", flat=True)
    items = Misalignment.objects.filter(chat=chat).values_list("pk", flat=True)
    notes = RaterNote.objects.filter(chat=chat).values_list("pk", flat=True)
    parts = [f"/chats/{chat.pk}/", f"/adjudication/{chat.pk}/", f"/examples/{chat.pk}/"]
    parts += [f"/rate/{pk}/" for pk in assignments] + [f"/notes/{pk}/" for pk in notes]
    parts += [f"/misalignments/{pk}/" for pk in items]
    keys = FormDraft.objects.values_list("pk", "key").iterator(ROWS_AT_ONCE)
    return [pk for pk, key in keys if any(part in f"{key}/" for part in parts)]


def imported_rows(chat: Chat) -> QuerySet[ImportedRow]:
    """Return what imports keep of a chat and of its labels and decisions, to be undone."""
    return ImportedRow.objects.filter(_objects_of(chat, "model", "object_id"))


def events_about(chat: Chat) -> Q:
    """Return the filter for audit events about a chat, its labels, decisions and notes."""
    return _objects_of(chat, "object_type", "object_id")


def _objects_of(chat: Chat, kind: str, number: str) -> Q:
    found = Q(**{kind: Chat._meta.label_lower, number: chat.pk})
    about: tuple[type[models.Model], ...] = (Label, Adjudication, Assignment, RaterNote, Misalignment)
    for model in about:
        ids = model._default_manager.filter(chat=chat).values("pk")
        found |= Q(**{kind: model._meta.label_lower, f"{number}__in": ids})
    return found


def same_text(chat: Chat) -> QuerySet[Chat]:
    """Return the other chats that still hold the same messages."""
    return Chat.objects.filter(content_hash=chat.content_hash, text_deleted_at=None).exclude(pk=chat.pk)


# ---------- a person ----------


def person_rows(person: Person) -> Rows:
    """Return the rows of an account and its rater: what it is, what it did, and what is noted about it."""
    found: dict[str, QuerySet[Any]] = {}
    if person.user is not None:
        found |= _account_rows(person.user)
    if person.rater is not None:
        rater = person.rater
        found |= {
            "labeling.Rater": Rater.objects.filter(pk=rater.pk),
            "labeling.Assignment": Assignment.objects.filter(rater=rater),
            "labeling.Label": Label.objects.filter(rater=rater),
            "labeling.LabelRevision": LabelRevision.objects.filter(label__rater=rater),
            "labeling.RaterNote": RaterNote.objects.filter(rater=rater),
        }
    return found


def _account_rows(user: User) -> dict[str, QuerySet[Any]]:
    about = Q(actor=user) | Q(object_type=User._meta.label_lower, object_id=user.pk)
    return {
        "labeling.User": User.objects.filter(pk=user.pk),
        "labeling.ApiToken": ApiToken.objects.filter(user=user),
        "labeling.Invitation": Invitation.objects.filter(invitation_of(user)),
        "labeling.AccountMail": mails_to(user),
        "account.EmailAddress": EmailAddress.objects.filter(user=user),
        "mfa.Authenticator": Authenticator.objects.filter(user=user),
        "socialaccount.SocialAccount": SocialAccount.objects.filter(user=user),
        "usersessions.UserSession": UserSession.objects.filter(user=user),
        "common.FormDraft": FormDraft.objects.filter(user=user),
        "common.InboxItem": InboxItem.objects.filter(user=user),
        "common.InboxChoice": InboxChoice.objects.filter(user=user),
        "common.Comment": Comment.objects.filter(by=user),
        "evaluation.PromptDraft": PromptDraft._base_manager.filter(author=user),
        "alignment.PinnedChat": PinnedChat.objects.filter(author=user),
        "alignment.TriageChange": TriageChange.objects.filter(by=user),
        "labeling.Adjudication": Adjudication.objects.filter(by=user),
        "labeling.AuditEvent": AuditEvent.objects.filter(about),
        "admin.LogEntry": LogEntry.objects.filter(user=user),
    }


def mails_to(user: User) -> QuerySet[AccountMail]:
    """Return the e-mails to this person that were not sent yet."""
    return AccountMail.objects.filter(to__iexact=user.email) if user.email else AccountMail.objects.none()


def invitation_of(user: User) -> Q:
    """Return the filter for invitations to this person."""
    return Q(used_by=user) | (Q(email__iexact=user.email) if user.email else Q(pk=None))


# ---------- as lines of a file ----------


def personal_lines(rows: Rows, **about: Any) -> Iterator[dict[str, Any]]:
    """Yield what the export holds: a first line about it, then each row with the name of its table."""
    counts = {name: query.count() for name, query in rows.items()}
    held = {name: count for name, count in counts.items() if count}
    yield (
        {"format": "lace-personal-data", "version": 1, "made_at": timezone.now().isoformat()}
        | about
        | {"tables": held}
    )
    for name in held:
        fields = [one.attname for one in rows[name].model._meta.concrete_fields if one.name not in SECRET]
        for values in rows[name].order_by("pk").values(*fields).iterator(ROWS_AT_ONCE):
            yield {"table": name, "row": {key: plain_value(value) for key, value in values.items()}}


def _related(model: type[models.Model]) -> Iterator[tuple[type[models.Model], str]]:
    """Yield the models of our own that refer to a model, each with the name of its field."""
    for app in OWN_APPS:
        for one in apps.get_app_config(app).get_models():
            for field in one._meta.concrete_fields:
                if field.related_model is model:
                    yield one, field.name
