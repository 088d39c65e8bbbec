"""Import of chats: streamed, all or nothing, repeatable."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from common.import_watch import import_watch
from common.jsonl import Fields, Ignored, ImportResult, read_records
from common.problems import ImportProblem, InputProblem, shown
from labeling.chats.core.splits import proportions_of
from labeling.chats.core.transcript import Transcript, transcript_of
from labeling.chats.services.chat_sets import MembersImport, chat_set_ensure
from labeling.models.chats import Chat, Split, Topic
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit_import

# Chats and characters at once: a chunk of long chats must not fill the memory.
CHUNK = (1000, 8_000_000)
# In a transaction of its own: raters who save wait for it on SQLite.
BATCH = (100, 250_000)
_GROUPING = ("topic_id", "experiment", "variant", "unit_id", "cluster")
_FIELDS = (*_GROUPING, "topic_by", "started_at", "metadata")
FACTS = ("topic", "topic_by", "started_at", "experiment", "variant", "unit_id", "cluster", "metadata")

Line = tuple[int, Transcript]
Prepare = Callable[[Transcript], Transcript]


def as_it_is(transcript: Transcript) -> Transcript:
    """Change nothing."""
    return transcript


def topics_ensure(keys: Collection[str]) -> dict[str, Topic]:
    """Return the topics with these keys; missing ones are created."""
    if not keys:
        return {}
    before = set(Topic.objects.filter(key__in=keys).values_list("key", flat=True))
    new = [Topic(key=key, name=key) for key in keys if key not in before]
    if new:
        Topic.objects.bulk_create(new, ignore_conflicts=True)
    found = Topic.objects.filter(key__in=keys)
    import_watch().created(topic for topic in found if topic.key not in before)
    return {topic.key: topic for topic in found}


def new_chat(transcript: Transcript, topic: Topic, *, origin: Chat.Origin, source: str) -> Chat:
    """Return a chat that is not stored yet."""
    return Chat(
        external_id=transcript.external_id,
        source=source,
        topic=topic,
        topic_by=transcript.topic_by if transcript.topic else Chat.TopicBy.NONE,
        started_at=transcript.started_at,
        experiment=transcript.experiment or "",
        variant=transcript.variant or "",
        unit_id=transcript.unit_id or "",
        cluster=transcript.cluster or "",
        metadata=transcript.metadata or {},
        origin=origin,
        **text_of_chat(transcript),
    )


def text_of_chat(transcript: Transcript) -> dict[str, Any]:
    """Return the fields of a chat that follow from what was said."""
    last_at, now = transcript.last_at, timezone.now()
    return {
        "messages": transcript.messages,
        "content_hash": transcript.content_hash,
        "near_hash": transcript.near_hash,
        "message_count": transcript.message_count,
        "char_count": transcript.char_count,
        "redactions": list(transcript.redactions),
        # NB: a wrong clock of the sender must not keep a text for ever.
        "last_at": min(last_at, now) if last_at else None,
    }


def facts_apply(chat: Chat, transcript: Transcript, topic: Topic | None) -> Collection[str]:
    """Set what the transcript says beside the messages; return the names of the fields that changed."""
    if transcript.topic_by == Chat.TopicBy.NONE:  # "unknown" of the sender is no topic
        topic = None
    fields = {
        "topic_id": topic.pk if topic else None,
        "topic_by": transcript.topic_by if topic else None,
        "started_at": transcript.started_at,
        "experiment": transcript.experiment,
        "variant": transcript.variant,
        "unit_id": transcript.unit_id,
        "cluster": transcript.cluster,
        "metadata": transcript.metadata,
    }
    changed = {
        name: value for name, value in fields.items() if value is not None and getattr(chat, name) != value
    }
    for name, value in changed.items():
        setattr(chat, name, value)
    return changed.keys()


def chats_import(
    *,
    path: Path,
    set_name: str = "",
    rubric_name: str = "",
    split: str = "",
    cluster_key: str = "",
    kind: str = "",
    origin: Chat.Origin = Chat.Origin.IMPORT,
    source: str = "",
    prepare: Prepare = as_it_is,
) -> ImportResult:
    """
    Add the chats of a file, and add all of them to a chat set if one is named.

    Parameters
    ----------
    path : JSON Lines of chats.
    set_name, rubric_name, kind : see `chat_set_ensure`.
    split : a split for all (default dev), or proportions ("train=20,dev=40,holdout=40"); a line's own wins.
    cluster_key : key of the metadata that names each chat's cluster.
    origin, source : of the new chats; the ids of another source are other chats.
    prepare : changes each chat before it is stored, as redaction does.

    Raises ImportProblem or InputProblem; no data is written then, unless the import's watch lets it write in
    batches: then the watch takes them back.
    """
    if not set_name and (split or rubric_name or kind):
        raise InputProblem(f"{'--split' if split else '--rubric' if rubric_name else '--kind'} needs --set")
    proportions = proportions_of(split or Split.DEV)
    watch = import_watch()
    with nullcontext() if watch.in_batches else transaction.atomic():
        members = None
        if set_name:
            with watch.batch():
                chat_set = chat_set_ensure(name=set_name, rubric_name=rubric_name, kind=kind)
            members = MembersImport(chat_set, proportions)
        importer = _ChatsImport(path, members, cluster_key, origin=origin, source=source, prepare=prepare)
        limits = BATCH if watch.in_batches else CHUNK
        for chunk in _chunks(read_records(path, importer.parse), *limits):
            with watch.batch():
                importer.store(chunk)
            watch.advance(len(chunk))
        if cluster_key and not importer.clustered:
            raise InputProblem(f"--cluster-key: no chat of the file has metadata.{shown(cluster_key)}")
        if members is not None:
            members.finish()
        result = importer.result(split_asked=bool(split))
        with watch.batch():
            if importer.regrouped:  # intervals of labelled criteria count clusters: they are computed anew
                Criterion.objects.filter(labels_seq__gt=0).update(labels_seq=F("labels_seq") + 1)
            audit_import(what="chats", path=path, result=result, obj=members.chat_set if members else None)
    return result


def chats_check(*, path: Path, into_set: bool, source: str = "", prepare: Prepare = as_it_is) -> ImportResult:
    """
    Find the problems of a file of chats and count what an import would do; write nothing and lock nothing.

    Problems go to the import's watch. `into_set` : the chats would join a set, so that splits matter.
    """
    importer = _ChatsImport(path, None, "", source=source, prepare=prepare, keeps_splits=into_set)
    watch, seen = import_watch(), dict[str, bytes]()
    for chunk in _chunks(read_records(path, importer.parse), *CHUNK):
        importer.check(chunk, seen)
        watch.advance(len(chunk))
    return importer.result(split_asked=False)


def _chunks(lines: Iterator[Line], most: int, most_characters: int) -> Iterator[list[Line]]:
    chunk: list[Line] = []
    characters = 0
    for line in lines:
        chunk.append(line)
        characters += line[1].char_count
        if len(chunk) == most or characters >= most_characters:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _topics(chunk: list[Line]) -> set[str]:
    return {transcript.topic or Topic.UNKNOWN for _, transcript in chunk}


class _ChatsImport:
    def __init__(
        self,
        path: Path,
        members: MembersImport | None,
        cluster_key: str,
        *,
        origin: Chat.Origin = Chat.Origin.IMPORT,
        source: str,
        prepare: Prepare,
        keeps_splits: bool = False,
    ) -> None:
        self.path, self.members = path, members
        self.origin, self.source, self.prepare = origin, source, prepare
        self.keeps_splits = keeps_splits or members is not None
        self.cluster_key, self.clustered = cluster_key, 0
        self.ignored = Ignored()
        self.counts: Counter[str] = Counter()
        self.topics: dict[str, Topic] = {}
        self.regrouped = False
        self.own = set(import_watch().own(Chat))  # written before this import was interrupted

    def parse(self, fields: Fields) -> Transcript:
        transcript = transcript_of(fields, self.ignored, cluster_key=self.cluster_key)
        self.clustered += bool(transcript.cluster)
        if transcript.split and not self.keeps_splits:
            self.ignored.note(["split"])
        return self.prepare(transcript)

    def known(self, chunk: list[Line]) -> dict[str, Chat]:
        """Return the stored chats of some lines by id."""
        ids = [transcript.external_id for _, transcript in chunk]
        chats = Chat.objects.filter(external_id__in=ids, source=self.source).defer("messages")
        return {chat.external_id: chat for chat in chats}

    def store(self, chunk: list[Line]) -> None:
        """Create or update the chats of some lines, and add them to the set."""
        self.topics |= topics_ensure(_topics(chunk) - self.topics.keys())
        known = self.known(chunk)
        new: dict[str, Chat] = {}
        updated: dict[str, Chat] = {}
        before: dict[str, dict[str, Any]] = {}
        outcomes = {}
        accepted = []
        for number, transcript in chunk:
            key = transcript.external_id
            chat = known.get(key) or new.get(key)
            if chat is None:
                topic = self.topics[transcript.topic or Topic.UNKNOWN]
                new[key] = new_chat(transcript, topic, origin=self.origin, source=self.source)
                outcomes[number] = "created"
            elif chat.content_hash != transcript.content_hash:
                self._refuse_other(number, key)
                continue
            else:
                was = {name: getattr(chat, name) for name in _FIELDS}
                changed = self._apply(chat, transcript)
                outcomes[number] = "updated" if changed else "unchanged"
                if chat.pk in self.own:
                    self.own.remove(chat.pk)
                    outcomes[number] = "created"
                if changed and key in known:
                    updated[key] = chat
                    before.setdefault(key, was)
                    self.regrouped |= "cluster" in changed
            accepted.append((number, transcript))
        Chat.objects.insert(list(new.values()))
        Chat.objects.bulk_update(updated.values(), FACTS, batch_size=100)
        self._tell(new, updated, before)
        self._join(accepted, known | new, outcomes)
        self.counts.update(outcomes.values())

    def check(self, chunk: list[Line], seen: dict[str, bytes]) -> None:
        """Count what the lines would do, and refuse those that the import refuses; write nothing.

        `seen` : the chats of earlier lines, by id.
        """
        known = self.known(chunk)
        topics = {topic.key: topic for topic in Topic.objects.filter(key__in=_topics(chunk))}
        self.topics = {key: topics.get(key) or Topic(key=key) for key in _topics(chunk)}
        for number, transcript in chunk:
            key, digest = transcript.external_id, bytes.fromhex(transcript.content_hash)
            chat = known.get(key)
            expected = bytes.fromhex(chat.content_hash) if chat else seen.setdefault(key, digest)
            if expected != digest:
                self._refuse_other(number, key)
            elif chat is not None:
                self.counts["updated" if self._apply(chat, transcript) else "unchanged"] += 1
            else:
                self.counts["created"] += 1

    def _refuse_other(self, number: int, key: str) -> None:
        import_watch().refuse(
            ImportProblem(str(self.path), number, "id", f"{shown(key)} already exists with other messages")
        )

    def _tell(
        self, new: Mapping[str, Chat], updated: Mapping[str, Chat], before: Mapping[str, Mapping[str, Any]]
    ) -> None:
        watch = import_watch()
        watch.created(new.values(), _GROUPING)
        for key, chat in updated.items():
            watch.updated(chat, before[key], {name: getattr(chat, name) for name in _FIELDS})

    def _join(self, chunk: list[Line], chats: dict[str, Chat], outcomes: dict[int, str]) -> None:
        if self.members is None:
            return
        splits: dict[int, str | None] = {}
        for _, transcript in chunk:
            pk = chats[transcript.external_id].pk
            splits[pk] = transcript.split or splits.get(pk)
        moved = self.members.add(splits)
        for number, transcript in chunk:
            if chats[transcript.external_id].pk in moved and outcomes[number] == "unchanged":
                outcomes[number] = "updated"

    def _apply(self, chat: Chat, transcript: Transcript) -> Collection[str]:
        """Update a known chat from the line; return the names of the fields that changed."""
        if chat.text_deleted_at is not None:  # its metadata is deleted, too
            return ()
        topic = None if transcript.topic is None else self.topics[transcript.topic or Topic.UNKNOWN]
        return facts_apply(chat, transcript, topic)

    def result(self, *, split_asked: bool) -> ImportResult:
        notes = []
        if self.members is not None:
            notes.append(
                f"chats added to the set {shown(self.members.chat_set.name)}: {self.members.added:,}"
            )
            if split_asked and self.members.kept:
                notes.append(f"chats that were already in it and keep their split: {self.members.kept:,}")
            if divided := self.members.divided_clusters():
                notes.append(f"clusters with chats in more than one split: {divided:,}")
        return ImportResult(
            created=self.counts["created"],
            unchanged=self.counts["unchanged"],
            updated=self.counts["updated"],
            ignored=self.ignored.counts,
            notes=tuple(notes),
        )
