"""What pages show before an export or a deletion: how much is stored, and where."""

from dataclasses import dataclass

from alignment.personal_data.queries.rows import (
    Person,
    Rows,
    chat_rows,
    person_rows,
    same_text,
)
from alignment.retention.queries import units_at_work
from labeling.models.chats import Chat

MOST_NAMED = 10
# Tables in words, those that say most first.
_CHAT_WORDS = (
    ("labeling.Label", "labels, with rationale and evidence"),
    ("labeling.RaterNote", "raters' notes"),
    ("labeling.Adjudication", "decisions, with their reason"),
    ("evaluation.Verdict", "verdicts, with the judge's rationale"),
    ("evaluation.ModelCall", "model calls, with prompt and answer"),
    ("alignment.Misalignment", "disagreements, with their note"),
    ("common.Comment", "comments"),
    ("evaluation.FewShotExample", "examples of prompts"),
    ("alignment.Issue", "issues that count it"),
    ("labeling.DataImport", "imported files"),
)
_PERSON_WORDS = (
    ("labeling.Label", "labels"),
    ("labeling.RaterNote", "notes"),
    ("common.Comment", "comments"),
    ("labeling.Adjudication", "decisions"),
    ("labeling.ApiToken", "API tokens"),
    ("usersessions.UserSession", "sessions"),
    ("mfa.Authenticator", "second factors"),
    ("common.InboxItem", "inbox items"),
    ("common.FormDraft", "drafts of forms"),
    ("labeling.AuditEvent", "entries of the audit log"),
)


@dataclass(frozen=True, slots=True)
class ChatData:
    """What is stored about a chat. `running`: the run that judges it now, 0 for none."""

    chat: Chat
    counts: tuple[tuple[int, str], ...]
    twins: tuple[Chat, ...]
    running: int

    @property
    def deleted(self) -> bool:
        """Whether its text is deleted."""
        return self.chat.text_deleted_at is not None


@dataclass(frozen=True, slots=True)
class PersonData:
    """What is stored about a person."""

    person: Person
    counts: tuple[tuple[int, str], ...]

    @property
    def deleted(self) -> bool:
        """Whether the account is a pseudonym already."""
        return self.person.deleted


def chat_data(chat: Chat) -> ChatData:
    """Return what the page of a chat's data shows."""
    unit = units_at_work(chat).first()
    twins = tuple(same_text(chat).order_by("pk")[:MOST_NAMED]) if chat.text_deleted_at is None else ()
    return ChatData(chat, _counts(chat_rows(chat), _CHAT_WORDS), twins, unit.run_id if unit else 0)


def person_data(person: Person) -> PersonData:
    """Return what the page of a person's data shows."""
    return PersonData(person, _counts(person_rows(person), _PERSON_WORDS))


def _counts(rows: Rows, words: tuple[tuple[str, str], ...]) -> tuple[tuple[int, str], ...]:
    found = ((rows[name].count() if name in rows else 0, word) for name, word in words)
    return tuple((count, word) for count, word in found if count)
