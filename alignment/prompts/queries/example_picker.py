"""Train chats from which an author picks worked examples, with their consensus."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from alignment.comparison.queries.latest_verdicts import latest_verdicts
from alignment.prompts.suggestions.queries.training_examples import train_chats
from evaluation.prompts.queries.versions import champions
from labeling.models.chats import Chat, Topic
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown
from labeling.rating.queries.notes import notes_for

VALUES: Mapping[str, bool | None] = {
    Consensus.State.TRUE.value: True,
    Consensus.State.FALSE.value: False,
    Consensus.State.NA.value: None,
}
EXCERPT = 140


@dataclass(frozen=True, slots=True)
class PickFilter:
    """The list's filter; '' is any. `label`: true, false or na; `topic`: a key; `words`: in id or text.

    `wrong`: only chats on which the judge's newest verdict differs from the consensus.
    """

    label: str = ""
    topic: str = ""
    words: str = ""
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class PickRow:
    """A chat of the list; consensus None is not applicable; `taken`: already an example.

    `judge_wrong`: the judge's newest verdict differs from the consensus, which is True or False.
    """

    chat: Chat
    consensus: bool | None
    taken: bool
    judge_wrong: bool

    @property
    def excerpt(self) -> str:
        """The customer's first words."""
        texts = (m["content"] for m in self.chat.messages if m["role"] == "user" and m["content"].strip())
        text = " ".join(next(texts, "").split())
        return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class Opinion:
    """The reason for an answer that equals the consensus, without the rater's name."""

    by: str
    text: str


@dataclass(frozen=True, slots=True)
class DraftExample:
    """An example of a draft; `chat` is None if the user cannot see it."""

    index: int
    chat: Chat | None
    first: int
    last: int
    value: bool | None
    rationale: str
    judge_wrong: bool = False

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The messages of the excerpt."""
        rows = self.chat.messages if self.chat else []
        return [row for row in rows if self.first <= row["n"] <= self.last]


def pickable(*, criterion: Criterion, user: User | AnonymousUser) -> QuerySet[Any]:
    """Return the `train_chats` with a decided consensus, by id; the consensus is annotated."""
    consensus = Consensus.objects.filter(chat=OuterRef("pk"), criterion=criterion, state__in=VALUES)
    return (
        train_chats(user=user)
        .annotate(consensus=Subquery(consensus.values("state")))
        .filter(consensus__isnull=False)
        .select_related("topic")
        .order_by("external_id")
    )


def judge_wrong(*, criterion: Criterion) -> QuerySet[Any, int]:
    """Return a subquery of the chats on which the newest verdict of the released version is wrong."""
    champion = champions(criteria=[criterion]).get(criterion.pk)
    latest = latest_verdicts(criterion=criterion, champion=champion)
    return latest.disagreements.order_by().values_list("chat_id", flat=True)


def pick_filtered(
    chats: QuerySet[Any], pick_filter: PickFilter, *, wrong: QuerySet[Any, int]
) -> QuerySet[Any]:
    """Return the chats that match the filter; `wrong` are those that the judge got wrong."""
    if pick_filter.wrong:
        chats = chats.filter(pk__in=wrong)
    if pick_filter.label in VALUES:
        chats = chats.filter(consensus=pick_filter.label)
    if pick_filter.topic:
        chats = chats.filter(topic__key=pick_filter.topic)
    return chats_with_words(chats, pick_filter.words)


def chats_with_words(chats: QuerySet[Any], words: str) -> QuerySet[Any]:
    """Return the chats with these words in id or text; all of them without words."""
    if not (words := words.strip().replace("\0", "")):
        return chats
    # NB: some databases store JSON with non-ASCII letters as \\uXXXX.
    written = json.dumps(words)[1:-1]
    matches = Q(transcript__icontains=words) | Q(transcript__icontains=written)
    chats = chats.annotate(transcript=Cast("messages", TextField()))
    return chats.filter(matches | Q(external_id__icontains=words))


def pick_rows(
    chats: Sequence[Any], *, taken: Sequence[Mapping[str, Any]], wrong: QuerySet[Any, int]
) -> list[PickRow]:
    """Return the rows of one page of the list; `wrong` are the chats that the judge got wrong."""
    ids = {line["chat"] for line in taken}
    marked = set(wrong.filter(chat__in=[chat.pk for chat in chats]))
    return [
        PickRow(chat, VALUES[chat.consensus], chat.external_id in ids, chat.pk in marked) for chat in chats
    ]


def pick_topics(chats: QuerySet[Any]) -> list[Topic]:
    """Return the topics of these chats by name."""
    return list(Topic.objects.filter(pk__in=chats.order_by().values("topic")).order_by("name"))


def opinions_on(
    *, chat: Chat, criterion: Criterion, value: bool | None, user: User | AnonymousUser
) -> list[Opinion]:
    """Return the reasons for answers that equal the consensus: the lead's decision, labels, then notes."""
    decided = Adjudication.objects.filter(chat=chat, criterion=criterion, replaced_at=None, value=value)
    labels = Label.objects.counted().filter(chat=chat, criterion=criterion, value=value).order_by("pk")
    opinions = [Opinion("The lead’s decision", text) for text in decided.values_list("reason", flat=True)]
    texts = [text for text in labels.values_list("rationale", flat=True) if text.strip()]
    opinions += [Opinion(f"Rater {number}", text) for number, text in enumerate(texts, 1)]
    notes = notes_for(user=user).filter(chat=chat, criterion=criterion).order_by("pk")
    return opinions + [Opinion("A rater’s note", text) for text in notes.values_list("text", flat=True)]


def chats_of_lines(*, user: User | AnonymousUser, lines: Sequence[Mapping[str, Any]]) -> list[Chat]:
    """Return the chats in the lines of a draft that the user can see."""
    named = chats_shown(user=user).filter(external_id__in={line["chat"] for line in lines})
    return list(named.select_related("topic"))


def chosen_examples(
    *, user: User | AnonymousUser, lines: Sequence[Mapping[str, Any]], criterion: Criterion
) -> list[DraftExample]:
    """Return a draft's examples in order.

    NB: a chat that has become holdout is hidden, together with the draft's own reason.
    """
    if not lines:
        return []
    chats = {chat.external_id: chat for chat in chats_of_lines(user=user, lines=lines)}
    wrong = set(judge_wrong(criterion=criterion).filter(chat__in=[chat.pk for chat in chats.values()]))
    return [_draft_example(index, line, chats.get(line["chat"]), wrong) for index, line in enumerate(lines)]


def _draft_example(
    index: int, line: Mapping[str, Any], chat: Chat | None, wrong: Collection[int]
) -> DraftExample:
    if chat is None:
        return DraftExample(index, None, 0, 0, None, "")
    first, last = line["turns"]
    return DraftExample(index, chat, first, last, line["value"], line["rationale"], chat.pk in wrong)
