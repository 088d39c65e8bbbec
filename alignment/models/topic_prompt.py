"""The topic prompt: what a lead chose, and the model's answer on each chat that it was asked about."""

from typing import Any

from django.db import models
from django.db.models import Q

from evaluation.models.runs import ModelCall, WorkerLease
from labeling.models.chats import Chat
from labeling.models.people import User


class TopicPrompt(models.Model):
    """The one row of the topic prompt; it is off until a lead switches it on."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting"
        ASKING = "asking", "Asking"

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    active = models.BooleanField(default=False)
    # Id of the endpoint; "": the server's own.
    endpoint = models.CharField(max_length=200, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    # [{"key", "description"}], in the order of the prompt.
    topics = models.JSONField(default=list, blank=True)
    # For a day in the site's time zone.
    budget_usd = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    spent_on = models.DateField(null=True, blank=True)
    spent_usd = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    # Why no topic is given at the moment, and when that was found.
    problem = models.CharField(max_length=500, blank=True, default="")
    problem_at = models.DateTimeField(null=True, blank=True)

    changed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # Of the worker.
    state = models.CharField(max_length=6, choices=State.choices, default=State.OPEN)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    tries = models.PositiveSmallIntegerField(default=0)
    rung_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="topicprompt_single")]

    def __str__(self) -> str:
        return "Topic prompt"

    @classmethod
    def current(cls) -> "TopicPrompt":
        """Return the row, or the defaults where nobody has changed them; it writes nothing."""
        return cls.objects.filter(id=1).first() or cls()


class TopicAnswer(models.Model):
    """What the prompt answered on a chat: to give it a topic, or to be measured against its given topic."""

    class State(models.TextChoices):
        OPEN = "open", "Not asked yet"
        READ = "read", "Read"
        UNREADABLE = "unreadable", "Unreadable answer"
        FAILED = "failed", "No answer"

    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    # Of endpoint, model and topics: answers of another prompt are not measured together.
    fingerprint = models.CharField(max_length=64)
    # The topic that the chat came with; "" where the answer gives the topic.
    given = models.CharField(max_length=200, blank=True, default="")
    answer = models.CharField(max_length=200, blank=True, default="")
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chat", "fingerprint"], name="topicanswer_once"),
        ]
        indexes = [
            models.Index(fields=["id"], name="topicanswer_open", condition=Q(state="open")),
            models.Index(
                fields=["fingerprint", "given", "answer"], name="topicanswer_given", condition=~Q(given="")
            ),
            models.Index(fields=["at"], name="topicanswer_at"),
        ]

    def __str__(self) -> str:
        return f"{self.chat_id}: {self.answer or self.state}"

    @classmethod
    def measured(cls, fingerprint: str) -> "models.QuerySet[TopicAnswer, Any]":
        """Return the answers on chats with a given topic, by the prompt with this fingerprint."""
        return cls.objects.filter(fingerprint=fingerprint).exclude(given="")
