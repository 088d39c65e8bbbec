"""Bulk upsert of chats that a system sends: redacted, given a topic, written in batches, answered once."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from common.jsonl import KEY_LIMIT, Fields, Ignored, in_batches
from common.problems import FieldProblem
from labeling.chats.core.transcript import Transcript, content_hash, transcript_of
from labeling.chats.services.chats import FACTS, facts_apply, new_chat, text_of_chat, topics_ensure
from labeling.ingest.core.intake import Intake
from labeling.ingest.core.upsert import StoredChat, UpsertDecision, upsert_decision
from labeling.ingest.queries import intake_now
from labeling.models.chats import Chat, Topic
from labeling.models.imports import DataImport
from labeling.models.ingest import ChatSource, IngestRequest, IngestSettings
from labeling.models.people import User

MOST_CHATS = 5000  # of one request
# In a transaction of its own: raters who save wait for it on SQLite.
CHATS_AT_ONCE = 500
MOST_TOPICS = 1000  # of the workspace: topics are strata, and a sender may send anything
MAX_METADATA = 100_000  # characters as JSON
TEXT = ("messages", "content_hash", "near_hash", "message_count", "char_count", "redactions", "last_at")
# A request that began this long ago has died with its process.
LONGEST_REQUEST = timedelta(minutes=10)
KEYS_KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class RowProblem:
    """Why a chat of the request was not stored; `index` counts from 0, `code` is invalid or refused."""

    index: int
    id: str
    code: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class IngestResult:
    """Counts and errors of a request; `ignored` counts the chats with each unknown field."""

    received: int
    created: int
    updated: int
    unchanged: int
    refused: int
    ignored: Mapping[str, int]
    redactions: Mapping[str, int]
    errors: tuple[RowProblem, ...]


class KeyConflict(Exception):
    """An Idempotency-Key that cannot be answered; `code` is other_body or in_progress."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def chats_ingest(*, rows: Sequence[Any], source: str, origin: Chat.Origin = Chat.Origin.API) -> IngestResult:
    """
    Store the chats that a source sends. Wrong ones are named; all others are stored.

    Sent again, the same chats are unchanged. A chat may grow by messages at its end until it is sampled.

    Parameters
    ----------
    rows : chats as in a file of chats, at most MOST_CHATS.
    source : names the system; the same id from another source is another chat.
    origin : of new chats.
    """
    batch = _Ingest(source, intake_now(), origin)
    for chunk in in_batches(enumerate(rows), CHATS_AT_ONCE):
        parsed = [(index, chat) for index, row in chunk if (chat := batch.parse(index, row)) is not None]
        with transaction.atomic():
            batch.store(parsed, received=len(chunk))
    return batch.result(len(rows))


def answer_once(
    *, by: User, key: str, digest: str, work: Callable[[], dict[str, Any]]
) -> tuple[dict[str, Any], bool]:
    """
    Do the work of a request with an Idempotency-Key once; return its answer and whether it was stored.

    Raises KeyConflict where the key came with another body, or its first request is still at work.
    """
    now = timezone.now()
    row, new = IngestRequest.objects.get_or_create(
        by=by, key=key, defaults={"digest": digest, "started_at": now}
    )
    if not new:
        if row.digest != digest:
            raise KeyConflict("other_body", "This Idempotency-Key came with another body. Use a new key.")
        if row.answer is not None:
            return row.answer, True
        _take_over(row, now)
    try:
        answer = work()
    except BaseException:
        IngestRequest.objects.filter(pk=row.pk, answer__isnull=True).delete()
        raise
    IngestRequest.objects.filter(pk=row.pk).update(answer=answer)
    return answer, False


def _take_over(row: IngestRequest, now: datetime) -> None:
    """Take over a request whose process has died."""
    stale = IngestRequest.objects.filter(pk=row.pk, started_at=row.started_at, answer__isnull=True)
    if row.started_at > now - LONGEST_REQUEST or not stale.update(started_at=now):
        raise KeyConflict("in_progress", "The first request with this Idempotency-Key is still at work.")


def ingest_sweep() -> None:
    """Delete the answers of requests after a day, and imported files where redaction is on."""
    IngestRequest.objects.filter(started_at__lt=timezone.now() - KEYS_KEPT).delete()
    if IngestSettings.current().redact:
        ended = (DataImport.State.DONE, DataImport.State.UNDONE)
        rows = DataImport.objects.filter(kind__in=DataImport.CHAT_KINDS, state__in=ended)
        import_texts_delete(rows.filter(text_deleted_at=None))


def import_texts_delete(rows: QuerySet[DataImport]) -> None:
    """Delete the files of these imports, and what the database holds of their content; counts stay."""
    for row in rows.only("key", "file_name"):
        for path in (row.path, row.lines_path):
            path.unlink(missing_ok=True)
        DataImport.objects.filter(pk=row.pk).update(columns=[], problems=[], text_deleted_at=timezone.now())


class _Ingest:
    """One request: its rules, counts and problems."""

    def __init__(self, source: str, intake: Intake, origin: Chat.Origin) -> None:
        self.source, self.intake, self.origin = source, intake, origin
        self.ignored = Ignored()
        self.counts: Counter[str] = Counter()
        self.redactions: Counter[str] = Counter()
        self.problems: list[RowProblem] = []

    def parse(self, index: int, row: Any) -> Transcript | None:
        """Return a chat of the request as it is stored; None where it is wrong."""
        try:
            fields = Fields(row)
            chat = transcript_of(fields, self.ignored)
            if chat.metadata and len(json.dumps(chat.metadata)) > MAX_METADATA:
                raise fields.refuse("metadata", f"has more than {MAX_METADATA:,} characters as JSON")
            chat = self.intake.prepared(chat)
            if len(chat.external_id) > KEY_LIMIT:
                raise fields.refuse("id", "is too long once its personal data is replaced")
        except FieldProblem as problem:
            given = row.get("id", "") if isinstance(row, dict) else ""
            name = given[:KEY_LIMIT] if isinstance(given, str) else ""
            self._refuse(index, name, "invalid", problem.field, problem.message)
            return None
        if chat.split:
            self.ignored.note(["split"])
        return chat

    def store(self, chats: Sequence[tuple[int, Transcript]], *, received: int) -> None:
        """Write some chats, in the transaction of the caller."""
        before, redacted = Counter(self.counts), Counter(self.redactions)
        # Requests of one source write one after the other: the same chat may be in two of them.
        ChatSource.objects.get_or_create(name=self.source)
        source = ChatSource.objects.select_for_update().get(name=self.source)
        topics = self._topics(chats)
        known = self._known(chats)
        new: dict[str, Chat] = {}
        rewritten: dict[str, Chat] = {}
        described: dict[str, Chat] = {}
        for index, chat in chats:
            key = chat.external_id
            if (topic := topics.get(chat.topic or Topic.UNKNOWN)) is None:
                message = f"is new, and the workspace has {MOST_TOPICS:,} topics. Send one of these"
                self._refuse(index, key, "refused", "topic", message)
            elif stored := known.get(key):
                fields = self._update(index, stored, chat, topic if chat.topic else None)
                if fields and key not in new:
                    (rewritten if fields == TEXT else described)[key] = stored
            else:
                new[key] = known[key] = new_chat(chat, topic, origin=self.origin, source=self.source)
                self.counts["created"] += 1
                self._count_redactions(chat)
        Chat.objects.insert(list(new.values()))
        Chat.objects.bulk_update(rewritten.values(), [*FACTS, *TEXT], batch_size=100)
        others = [chat for key, chat in described.items() if key not in rewritten]
        Chat.objects.bulk_update(others, FACTS, batch_size=100)
        self.counts["refused"] = len(self.problems)
        self._tell(source, self.counts - before, self.redactions - redacted, received)

    def _known(self, chats: Sequence[tuple[int, Transcript]]) -> dict[str, Chat]:
        """Return the stored chats, and their messages where what comes in differs."""
        hashes = {chat.external_id: {chat.content_hash} for _, chat in chats}
        for _, chat in chats:
            hashes[chat.external_id].add(chat.content_hash)
        rows = Chat.objects.filter(external_id__in=hashes, source=self.source).defer("messages")
        known = {chat.external_id: chat for chat in rows.select_for_update(of=("self",))}
        differs = {chat.pk: chat for key, chat in known.items() if hashes[key] != {chat.content_hash}}
        for pk, messages in Chat.objects.filter(pk__in=differs).values_list("pk", "messages"):
            differs[pk].messages = messages
        return known

    def _update(self, index: int, stored: Chat, chat: Transcript, topic: Topic | None) -> tuple[str, ...]:
        """Change a known chat in memory; return which of its fields have to be written."""
        sampled = stored.sampled_at is not None
        decision, rewritten = self._decision(stored, chat, sampled=sampled)
        if decision.outcome == "refused":
            self._refuse(index, chat.external_id, "refused", "messages", decision.reason)
            return ()
        fields: tuple[str, ...] = ()
        # An earlier state of the chat that was overtaken, and one that was judged, change nothing.
        if not sampled and not decision.reason and stored.text_deleted_at is None:
            fields = FACTS if facts_apply(stored, chat, topic) else ()
            if decision.outcome == "grew" or rewritten:
                self._rewrite(stored, chat, grown=decision.outcome == "grew")
                fields = TEXT
        self.counts["updated" if fields else "unchanged"] += 1
        return fields

    def _rewrite(self, stored: Chat, chat: Transcript, *, grown: bool) -> None:
        for name, value in text_of_chat(chat).items():
            setattr(stored, name, value)
        if grown and stored.last_at is None:
            stored.last_at = timezone.now()
        self._count_redactions(chat)

    def _decision(self, stored: Chat, chat: Transcript, *, sampled: bool) -> tuple[UpsertDecision, bool]:
        """Decide on a known chat; also return whether its stored text lacks the redaction of today."""
        if stored.content_hash == chat.content_hash:
            return UpsertDecision("same"), False
        messages: list[dict[str, Any]] | None = None
        digest, rewritten = stored.content_hash, False
        if stored.text_deleted_at is None:
            messages = self.intake.redacted_messages(stored.messages)
            digest = content_hash((str(one["role"]), str(one["content"])) for one in messages)
            rewritten = digest != stored.content_hash
        decision = upsert_decision(
            external_id=chat.external_id,
            stored=StoredChat(messages, digest, sampled),
            incoming=chat.messages,
        )
        return decision, rewritten

    def _topics(self, chats: Sequence[tuple[int, Transcript]]) -> dict[str, Topic]:
        """Return the topics of some chats; new ones while the workspace has few enough."""
        keys = {chat.topic or Topic.UNKNOWN for _, chat in chats}
        there = set(Topic.objects.filter(key__in=keys).values_list("key", flat=True))
        if new := sorted(keys - there - {Topic.UNKNOWN}):
            keys -= set(new[max(MOST_TOPICS - Topic.objects.count(), 0) :])
        return topics_ensure(keys)

    def _refuse(self, index: int, key: str, code: str, field: str, message: str) -> None:
        self.problems.append(RowProblem(index, key, code, field, message))

    def _count_redactions(self, chat: Transcript) -> None:
        for one in chat.redactions:
            self.redactions[one["kind"]] += one["count"]

    @staticmethod
    def _tell(
        source: ChatSource, counts: Mapping[str, int], redactions: Mapping[str, int], received: int
    ) -> None:
        """Add to the counts of the source what one batch did."""
        source.last_at = timezone.now()
        for name, count in ({"received": received} | dict(counts)).items():
            setattr(source, name, getattr(source, name) + count)
        for kind, count in redactions.items():
            source.redactions[kind] = source.redactions.get(kind, 0) + count
        source.save()

    def result(self, received: int) -> IngestResult:
        """Return what became of all chats."""
        return IngestResult(
            received=received,
            created=self.counts["created"],
            updated=self.counts["updated"],
            unchanged=self.counts["unchanged"],
            refused=len(self.problems),
            ignored=dict(self.ignored.counts),
            redactions=dict(self.redactions),
            errors=tuple(sorted(self.problems, key=lambda one: one.index)),
        )


def result_json(result: IngestResult) -> dict[str, Any]:
    """Return a result as the API answers it."""
    return asdict(result) | {"errors": [asdict(one) for one in result.errors]}
