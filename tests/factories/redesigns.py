"""What tests of redesigns share."""

from typing import Any

from django.utils import timezone

from common.jsonl import Fields, Ignored
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Label
from labeling.models.people import Rater
from labeling.models.rubric import Criterion
from labeling.rubric.core.redesign import Kind, Redesign, Successor
from labeling.rubric.core.rubric import criterion_of
from labeling.rubric.services.redesign import Redesigned, criteria_redesign

DIMENSIONS = ("compliance", "answer_correctness")
KEYS = ("polite", "brief", "correct")


def successor(key: str, *carries: str, **fields: Any) -> Successor:
    """A new criterion; the labels of those named carry over to it."""
    plain = {"key": key, "tier": "simple", "dimension": "compliance"}
    plain |= {"question": f"Is {key} so?", "definition": f"True when {key}."}
    spec = criterion_of(Fields(plain | fields), DIMENSIONS, Ignored())
    return Successor(spec, frozenset(carries))


def redesign(kind: Kind, *olds: str, into: tuple[Successor, ...] = (), same: bool = True) -> Redesign:
    return Redesign(kind, olds, into, same_answers=same)


SPLIT = redesign("split", "polite", into=(successor("greets", "polite"), successor("thanks")))
MERGE = redesign("merge", "polite", "brief", into=(successor("kind", "polite", "brief"),))


def criterion(key: str) -> Criterion:
    return Criterion.objects.get(key=key)


def carried_out(wanted: Redesign, *, reason: str = "Raters asked") -> Redesigned:
    return criteria_redesign(redesign=wanted, reason=reason, by=None)


def give(chat: Chat, criterion: Criterion, rater: Rater, value: bool | None, **fields: Any) -> Label:
    """A submitted label to the criterion's newest question."""
    plain: dict[str, Any] = {"state": "submitted", "given_at": timezone.now(), "source": "screen"}
    plain |= {"version": criterion.versions.latest("number"), "value": value}
    row = Label.objects.create(chat=chat, criterion=criterion, rater=rater, **plain | fields)
    consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[chat.pk])
    return row


def decide(chat: Chat, criterion: Criterion, value: bool | None, **fields: Any) -> Adjudication:
    plain: dict[str, Any] = {"reason": "Turn 2.", "by_name": "Ines", "created_at": timezone.now()}
    row = Adjudication.objects.create(chat=chat, criterion=criterion, value=value, **plain | fields)
    consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[chat.pk])
    return row


def values(key: str) -> dict[tuple[str, str], bool | None]:
    """(chat, rater) → value of the submitted labels of a criterion."""
    rows = Label.objects.filter(criterion__key=key, state="submitted")
    return {
        (chat, rater): value
        for chat, rater, value in rows.values_list("chat__external_id", "rater__name", "value")
    }
