"""Training chats from which an author picks worked examples, with what people decided on them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from alignment.prompts.suggestions.queries.training_examples import train_chats
from labeling.models.chats import Chat, Topic
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown

VALUES: Mapping[str, bool | None] = {
    Consensus.State.TRUE.value: True,
    Consensus.State.FALSE.value: False,
    Consensus.State.NA.value: None,
}
EXCERPT = 140


@dataclass(frozen=True, slots=True)
class PickFilter:
    """What to list; '' = any. `label` is true, false or na, `topic` a key, `words` stand in id or text."""

    label: str = ""
    topic: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class PickRow:
    """A chat of the list; `people` is the consensus, None = not applicable; `taken`: an example already."""

    chat: Chat
    people: bool | None
    taken: bool

    @property
    def excerpt(self) -> str:
        """The customer's first words."""
        said = (m["content"] for m in self.chat.messages if m["role"] == "user" and m["content"].strip())
        text = " ".join(next(said, "").split())
        return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class Opinion:
    """Why somebody answered as the consensus does; who it was is not told."""

    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """An example of a draft as the page shows it; without `chat` it is one that the user may not see."""

    index: int
    chat: Chat | None
    first: int
    last: int
    value: bool | None
    rationale: str

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The messages of the excerpt."""
        rows = self.chat.messages if self.chat else []
        return [row for row in rows if self.first <= row["n"] <= self.last]


def pickable(*, criterion: Criterion, user: User | AnonymousUser) -> QuerySet[Any]:
    """The `train_chats` that people decided on, by id; `people` is the consensus."""
    said = Consensus.objects.filter(chat=OuterRef("pk"), criterion=criterion, state__in=VALUES)
    return (
        train_chats(user=user)
        .annotate(people=Subquery(said.values("state")))
        .filter(people__isnull=False)
        .select_related("topic")
        .order_by("external_id")
    )


def picked(chats: QuerySet[Any], wanted: PickFilter) -> QuerySet[Any]:
    """Those of the chats that fit the filter."""
    if wanted.label in VALUES:
        chats = chats.filter(people=wanted.label)
    if wanted.topic:
        chats = chats.filter(topic__key=wanted.topic)
    if words := wanted.words.strip():
        # NB: some databases hold JSON with letters beyond ASCII written as \\uXXXX.
        written = json.dumps(words)[1:-1]
        said = Q(said__icontains=words) | Q(said__icontains=written)
        chats = chats.annotate(said=Cast("messages", TextField()))
        chats = chats.filter(said | Q(external_id__icontains=words))
    return chats


def pick_rows(chats: Sequence[Any], *, taken: Sequence[Mapping[str, Any]]) -> list[PickRow]:
    """Rows of one page of the list."""
    ids = {line["chat"] for line in taken}
    return [PickRow(chat, VALUES[chat.people], chat.external_id in ids) for chat in chats]


def pick_topics(chats: QuerySet[Any]) -> list[Topic]:
    """The topics of these chats by name."""
    return list(Topic.objects.filter(pk__in=chats.order_by().values("topic")).order_by("name"))


def opinions_on(*, chat: Chat, criterion: Criterion, value: bool | None) -> list[Opinion]:
    """The reasons of those who answered as the consensus does, the lead's decision first."""
    decided = Adjudication.objects.filter(chat=chat, criterion=criterion, replaced_at=None, value=value)
    labels = Label.objects.counted().filter(chat=chat, criterion=criterion, value=value).order_by("pk")
    found = [Opinion("The lead’s decision", text) for text in decided.values_list("reason", flat=True)]
    texts = [text for text in labels.values_list("rationale", flat=True) if text.strip()]
    return found + [Opinion(f"Rater {number}", text) for number, text in enumerate(texts, 1)]


def chats_of_lines(*, user: User | AnonymousUser, lines: Sequence[Mapping[str, Any]]) -> list[Chat]:
    """The chats that the lines of a draft name, those that the user may see."""
    named = chats_shown(user=user).filter(external_id__in={line["chat"] for line in lines})
    return list(named.select_related("topic"))


def chosen_examples(*, user: User | AnonymousUser, lines: Sequence[Mapping[str, Any]]) -> list[Chosen]:
    """A draft's examples in their order.

    NB: of a chat that is held out by now nothing is shown, not even what the draft says of it.
    """
    chats = {chat.external_id: chat for chat in chats_of_lines(user=user, lines=lines)} if lines else {}
    return [_chosen(index, line, chats.get(line["chat"])) for index, line in enumerate(lines)]


def _chosen(index: int, line: Mapping[str, Any], chat: Chat | None) -> Chosen:
    if chat is None:
        return Chosen(index, None, 0, 0, None, "")
    first, last = line["turns"]
    return Chosen(index, chat, first, last, line["value"], line["rationale"])
