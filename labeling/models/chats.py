"""Chats, topics and chat sets."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from common.jsonl import in_batches
from common.search.index import rows_with
from common.search.words import beginnings, index_words
from common.sql import insert_rows
from labeling.models.people import User
from labeling.models.rubric import Rubric

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser


SAMPLED_AT_ONCE = 500
# In `ChatSet.sampling`: the id of the sample plan that made the set.
PLAN = "plan"


class Split(models.TextChoices):
    """The permitted use of a chat in a set."""

    TRAIN = "train", "train"
    DEV = "dev", "dev"
    HOLDOUT = "holdout", "holdout"


class Topic(models.Model):
    """The stratum of a chat; its key is the text as imported."""

    UNKNOWN = "unknown"

    key = models.CharField(max_length=200)
    name = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key"], name="topic_key")]

    def __str__(self) -> str:
        return self.name


class ChatQuerySet(models.QuerySet["Chat"]):
    """Filters of chats."""

    def visible_to(self, user: "User | AnonymousUser") -> Self:
        """Exclude chats that are holdout in any set, unless the user may see those."""
        if user.has_perm("labeling.see_holdout"):
            return self
        holdout = ChatSetMember.objects.filter(split=Split.HOLDOUT).values("chat_id")
        return self.exclude(pk__in=holdout)

    def with_words(self, words: Sequence[str], *, titles: bool = True) -> Self:
        """Filter to chats whose id, messages or, with `titles`, title have words that begin so; all of them.

        `words` are those of `asked_words`. Raters do not see titles: they search without them.
        """
        if not words:
            return self.none()
        asked = beginnings(words, titles=titles)
        return self.filter(pk__in=rows_with(asked, table="labeling_chatwords", key="chat_id"))

    def sampled(self, chats: Iterable[int]) -> None:
        """Note that a set, a sample or a label takes these chats; from now on their messages never change.

        It is the one mark of it: the API refuses more messages, and no plan samples the chats again.
        """
        now = timezone.now()
        for batch in in_batches(chats, SAMPLED_AT_ONCE):
            self.filter(pk__in=batch, sampled_at=None).update(sampled_at=now)

    @transaction.atomic
    def bulk_create(self, objs: "Iterable[Chat]", *args: Any, **options: Any) -> "list[Chat]":
        """Create chats with their words."""
        chats = super().bulk_create(objs, *args, **options)
        ChatWords.write(chat for chat in chats if chat.pk)
        return chats

    @transaction.atomic
    def insert(self, chats: "Sequence[Chat]") -> None:
        """Create many new chats with their words: as `bulk_create`, in half the time."""
        now = timezone.now()
        for chat in chats:
            chat.created_at = now
        names = [field.attname for field in Chat._meta.concrete_fields if not field.primary_key]
        columns = [field.name for field in Chat._meta.concrete_fields if not field.primary_key]
        insert_rows(Chat, columns, map(attrgetter(*names), chats))
        new = self.filter(external_id__in=[chat.external_id for chat in chats])
        rows = new.filter(source__in={chat.source for chat in chats}).values_list(
            "source", "external_id", "pk"
        )
        ids = {(source, external_id): pk for source, external_id, pk in rows}
        for chat in chats:
            chat.pk = ids[chat.source, chat.external_id]
            chat._state.adding = False
        ChatWords.write(chats)

    @transaction.atomic
    def bulk_update(self, objs: "Iterable[Chat]", fields: Iterable[str], *args: Any, **options: Any) -> int:
        """Update chats, and their words where these may have changed."""
        chats, names = list(objs), list(fields)
        count = super().bulk_update(chats, names, *args, **options)
        if not ChatWords.SOURCES.isdisjoint(names):
            # NB: the given chats may lack their messages.
            whole = Chat.objects.filter(pk__in=[chat.pk for chat in chats])
            ChatWords.write(whole.only(*ChatWords.SOURCES).iterator(chunk_size=200))
        return count


class Chat(models.Model):
    """
    One multi-turn conversation, known by its source and external id.

    It may grow by messages at its end until it is sampled; after that its messages never change.
    """

    class Origin(models.TextChoices):
        IMPORT = "import", "Imported"
        API = "api", "API"
        DEMO = "demo", "Written for the demo"

    class TopicBy(models.TextChoices):
        GIVEN = "", "Given with the chat"
        RULE = "rule", "Topic rule"
        NONE = "none", "Nobody yet"
        PROMPT = "prompt", "Topic prompt"

    external_id = models.CharField(max_length=200)
    # The system that sent it; "" for files of chats.
    source = models.CharField(max_length=80, blank=True, default="")
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="chats")
    # What gave the topic; a chat without one is unknown, and the topic prompt may give it one.
    topic_by = models.CharField(
        max_length=6, choices=TopicBy.choices, blank=True, default=TopicBy.GIVEN, db_default=""
    )
    started_at = models.DateTimeField(null=True, blank=True)
    # [{"n": 1, "role": "user", "content": "…", "created_at"?: "…"}]; one column imports 7 times faster.
    messages = models.JSONField()
    content_hash = models.CharField(max_length=64)
    near_hash = models.BigIntegerField(null=True, blank=True)
    message_count = models.PositiveIntegerField()
    char_count = models.PositiveIntegerField()
    experiment = models.CharField(max_length=80, blank=True, default="")
    variant = models.CharField(max_length=80, blank=True, default="")
    # What an experiment assigns to a variant, such as a customer; it may have several chats.
    unit_id = models.CharField(max_length=200, blank=True, default="")
    # Chats of one cluster belong together, as those of one customer: statistics count them as one unit.
    cluster = models.CharField(max_length=200, blank=True, default="")
    metadata = models.JSONField(default=dict)
    redactions = models.JSONField(default=list)
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.IMPORT)
    created_at = models.DateTimeField(auto_now_add=True)
    # The time of the last message; null where the chat does not say it.
    last_at = models.DateTimeField(null=True, blank=True)
    # When a sample, a set or a label first took the chat: what was judged must not change.
    sampled_at = models.DateTimeField(null=True, blank=True)
    # When the text was deleted after its retention; counts, hashes and figures stay.
    text_deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ChatQuerySet.as_manager()

    class Meta:
        constraints = [
            # The id first: most look-ups know no source.
            models.UniqueConstraint(fields=["external_id", "source"], name="chat_source_external_id")
        ]
        indexes = [
            models.Index(
                Coalesce("last_at", "created_at"), name="chat_text_age", condition=Q(text_deleted_at=None)
            ),
            models.Index(fields=["content_hash"], name="chat_content_hash"),
            models.Index(fields=["topic", "started_at"], name="chat_topic_started"),
            # A day's chats by topic, without their texts: the sampling frames of nightly samples.
            models.Index(
                fields=["created_at", "topic", "id"], name="chat_arrival", condition=Q(sampled_at=None)
            ),
            models.Index(
                fields=["experiment", "variant", "started_at"],
                name="chat_experiment",
                condition=~Q(experiment=""),
            ),
            models.Index(fields=["cluster"], name="chat_cluster", condition=~Q(cluster="")),
            # Chats that wait for the topic prompt.
            models.Index(
                fields=["created_at"],
                name="chat_topic_open",
                condition=Q(topic_by="none", sampled_at=None, text_deleted_at=None),
            ),
        ]

    def __str__(self) -> str:
        return self.external_id

    def save(self, *args: Any, **options: Any) -> None:
        """Save with its words."""
        with transaction.atomic():
            super().save(*args, **options)
            ChatWords.write([self])

    @property
    def title(self) -> str:
        """Return the chat's title, else its topic."""
        return str(self.metadata.get("title") or self.topic.name)


class ChatWords(models.Model):
    """The words of a chat for the search; an index of the database follows each change of this table."""

    SOURCES = frozenset(("external_id", "messages", "metadata"))

    chat = models.OneToOneField(Chat, on_delete=models.CASCADE, primary_key=True, related_name="+")
    words = models.TextField()

    def __str__(self) -> str:
        return f"Words of chat {self.chat_id}"

    @classmethod
    def write(cls, chats: Iterable[Chat]) -> None:
        """Store the words of these chats."""
        rows = [ChatWords(chat_id=chat.pk, words=words_of_chat(chat)) for chat in chats]
        # NB: in statements as long as they may be, because SQLite writes what the index gathers after each.
        ChatWords.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["chat"], update_fields=["words"]
        )


def words_of_chat(chat: Any) -> str:
    """Return what the search finds a chat by; also of the chats that a migration reads."""
    contents = (str(message.get("content", "")) for message in chat.messages)
    return index_words([chat.external_id, *contents], title=str(chat.metadata.get("title") or ""))


class ChatSetQuerySet(models.QuerySet["ChatSet"]):
    """Filters of chat sets."""

    def listed(self, *, also: object = None) -> Self:
        """Exclude the samples that plans make every night: lists and pickers would be full of them.

        `also` : the id, as number or text, of a set that is kept in any case, such as the chosen one.
        """
        made = ChatSet.objects.filter(kind=ChatSet.Kind.SAMPLE, sampling__has_key=PLAN)
        if str(also).isdecimal() and len(str(also)) < 19:
            made = made.exclude(pk=int(str(also)))
        return self.exclude(pk__in=made.values("pk"))

    def of_plan(self, plan: int) -> Self:
        """Filter to the sets that a sample plan has made, for the judge and for raters."""
        return self.filter(sampling__plan=plan)


class ChatSet(models.Model):
    """A named, curated set of chats for one rubric."""

    class Kind(models.TextChoices):
        CURATED = "curated", "Curated"
        SAMPLE = "sample", "Sample"
        GOLD = "gold", "Gold"
        CALIBRATION = "calibration", "Calibration"

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.CURATED)
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="chat_sets")
    sampling = models.JSONField(null=True, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    objects = ChatSetQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="chatset_name")]

    def __str__(self) -> str:
        return self.name


class ChatSetMemberQuerySet(models.QuerySet["ChatSetMember"]):
    """Creation of members."""

    @transaction.atomic
    def bulk_create(
        self, objs: "Iterable[ChatSetMember]", *args: Any, **options: Any
    ) -> "list[ChatSetMember]":
        """Create members and note that their chats are sampled."""
        members = super().bulk_create(objs, *args, **options)
        Chat.objects.sampled([member.chat_id for member in members])
        return members


class ChatSetMember(models.Model):
    """A chat's position and split in a set."""

    chat_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, related_name="members")
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="memberships")
    split = models.CharField(max_length=8, choices=Split.choices, default=Split.DEV)
    position = models.PositiveIntegerField()
    stratum = models.CharField(max_length=200, blank=True, default="")
    inclusion_probability = models.FloatField(null=True, blank=True)

    objects = ChatSetMemberQuerySet.as_manager()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["chat_set", "chat"], name="member_once"),
            models.UniqueConstraint(fields=["chat_set", "position"], name="member_position"),
            models.CheckConstraint(
                condition=Q(inclusion_probability__isnull=True)
                | Q(inclusion_probability__gt=0, inclusion_probability__lte=1),
                name="member_probability",
            ),
        ]
        indexes = [models.Index(fields=["chat", "split"], name="member_chat")]

    def __str__(self) -> str:
        return f"{self.chat_set_id}: {self.chat_id}"

    def save(self, *args: Any, **options: Any) -> None:
        """Save and note that the chat is sampled."""
        with transaction.atomic():
            super().save(*args, **options)
            Chat.objects.sampled([self.chat_id])
