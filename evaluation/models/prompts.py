"""Prompt versions, promotions and knowledge articles."""

from django.db import models

from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion


class SavedVersions(models.Manager["PromptVersion"]):
    """The numbered versions, without texts that were only tried."""

    def get_queryset(self) -> models.QuerySet["PromptVersion"]:
        """Return the versions with a number."""
        return super().get_queryset().filter(number__isnull=False)


class PromptVersion(models.Model):
    """An immutable Markdown prompt (CO-STAR sections) for one criterion.

    Without a number it is a tried, unsaved text: `objects` excludes it, Django's `_base_manager` includes it.
    """

    class Origin(models.TextChoices):
        SHIPPED = "shipped", "Shipped"
        GENERATED = "generated", "Generated from question and definition"
        AUTHOR = "author", "Author"
        SUGGESTED = "suggested", "Suggested by a model"
        AGENT = "agent", "Proposed by an agent"

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField()
    content_hash = models.CharField(max_length=64)
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.AUTHOR)
    base = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # The criterion's text in use when this was saved: a newer one may ask for something else.
    written_for = models.ForeignKey(
        CriterionVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    reason = models.TextField(blank=True, default="")
    author = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SavedVersions()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["criterion", "number"], name="promptversion_number")]

    def __str__(self) -> str:
        return f"{self.criterion_id} v{self.number}"


class FewShotExample(models.Model):
    """A worked example of a prompt version, from a `train` chat; copied, so that it never changes."""

    prompt_version = models.ForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="examples")
    position = models.PositiveSmallIntegerField()
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    first_turn = models.PositiveIntegerField()
    last_turn = models.PositiveIntegerField()
    value = models.BooleanField(null=True, blank=True)
    rationale = models.TextField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["prompt_version", "position"], name="fewshot_position"),
            models.UniqueConstraint(fields=["prompt_version", "chat"], name="fewshot_chat"),
        ]

    def __str__(self) -> str:
        return f"{self.prompt_version_id}: {self.chat_id}"


class OpenDrafts(models.Manager["PromptDraft"]):
    """The drafts that are neither discarded nor saved."""

    def get_queryset(self) -> models.QuerySet["PromptDraft"]:
        return super().get_queryset().filter(ended=False)


class PromptDraft(models.Model):
    """An author's unsaved work on a criterion's prompt; of an ended draft only its count is kept."""

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    author = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    base = models.ForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    # [{"chat": external id, "turns": [first, last], "value", "rationale"}], as lines of an examples file.
    examples = models.JSONField(default=list)
    origin = models.CharField(
        max_length=10, choices=PromptVersion.Origin.choices, default=PromptVersion.Origin.AUTHOR
    )
    # Increased by every save, so that a second tab cannot overwrite unseen changes. The author's next draft
    # continues the count.
    revision = models.PositiveIntegerField(default=1)
    # Discarded, or saved as a version: text and examples are deleted.
    ended = models.BooleanField(default=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = OpenDrafts()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["criterion", "author"], name="draft_once")]

    def __str__(self) -> str:
        return f"{self.criterion_id}: {self.author_id}"


class Promotion(models.Model):
    """A release of a prompt version; the latest one of a criterion names its champion. Append-only."""

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    version = models.ForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="promotions")
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    reason = models.TextField(blank=True, default="")
    overridden = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["criterion", "-id"], name="promotion_latest")]

    def __str__(self) -> str:
        return f"{self.criterion_id}: {self.version_id}"


class KnowledgeArticle(models.Model):
    """A piece of business knowledge; its text is in its versions."""

    key = models.CharField(max_length=200)

    class Meta:
        ordering = ["key"]
        constraints = [models.UniqueConstraint(fields=["key"], name="article_key")]

    def __str__(self) -> str:
        return self.key


class ArticleVersion(models.Model):
    """An immutable text of an article; the latest one is in use."""

    article = models.ForeignKey(KnowledgeArticle, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    text = models.TextField()
    content_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["article", "number"], name="articleversion_number")]

    def __str__(self) -> str:
        return f"{self.article_id} v{self.number}"


class TextVector(models.Model):
    """A text's embedding (little-endian 32-bit floats), addressed by content: the same text is asked once."""

    endpoint = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    content_hash = models.CharField(max_length=64)
    vector = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "model", "content_hash"], name="textvector_once")
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.content_hash[:12]}"


class CriterionArticle(models.Model):
    """An article of a criterion whose articles are listed."""

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    article = models.ForeignKey(KnowledgeArticle, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["criterion", "article"], name="criterionarticle_once")]

    def __str__(self) -> str:
        return f"{self.criterion_id}: {self.article_id}"


class KnowledgeSnapshot(models.Model):
    """Which article versions a judge reads, pinned by content."""

    content_hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["content_hash"], name="snapshot_hash")]

    def __str__(self) -> str:
        return self.content_hash[:12]


class SnapshotItem(models.Model):
    """One article version that a criterion reads in a snapshot."""

    snapshot = models.ForeignKey(KnowledgeSnapshot, on_delete=models.PROTECT, related_name="items")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    article_version = models.ForeignKey(ArticleVersion, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["snapshot", "criterion", "article_version"], name="snapshotitem_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.snapshot_id}: {self.criterion_id} {self.article_version_id}"
