"""From what one person answered about one chat in another tool to labels."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from common.jsonl import KEY_LIMIT, NAME_LIMIT, Fields
from common.problems import FieldProblem, shown
from labeling.rating.core.answers import LabelLine
from labeling.transfer.core.mapping import ForeignMap, UnknownChoices, answers_in, at_path

HOUR_MS = 3_600_000  # the most that one answer can have taken; beyond, the page was left open
DAY = 86_400  # seconds; the most that one chat can have taken
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
EARLIER = "earlier answers by the same rater on the same chat"
# Where a tool keeps what was answered, by kind of question.
_VALUES = ("choices", "rating", "number", "text")


@dataclass(slots=True)
class Tally:
    """What was not taken over, and why; `met`: the criteria on which the file holds any choice."""

    unknown: UnknownChoices = field(default_factory=UnknownChoices)
    passed: Counter[str] = field(default_factory=Counter)
    met: set[str] = field(default_factory=set)

    def notes(self, mapping: ForeignMap) -> tuple[str, ...]:
        """One line each."""
        passed = [f"passed over: {count:,} {what}" for what, count in sorted(self.passed.items()) if count]
        missed = [row for row in mapping.criteria if row.key not in self.met]
        return (*passed, *(f"no record answers {row.question!r} ({row.key})" for row in missed))


@dataclass(frozen=True, slots=True)
class Given:
    """What one person answered about one chat: question → what the tool stored; time in seconds."""

    rater: str
    values: Mapping[str, Any]
    at: datetime | None = None
    seconds: float | None = None
    path: str = ""


def chat_id_of(record: Fields, path: str) -> str:
    """The chat's id at a dotted path of a record; a number is taken as its digits."""
    value = at_path(record.data, path)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise record.refuse(path, "is missing" if value is None else f"must be a chat id, not {shown(value)}")
    if len(str(value)) > KEY_LIMIT:
        raise record.refuse(path, f"is longer than {KEY_LIMIT} characters")
    return str(value)


def rater_name(names: Iterable[Any], mapping: ForeignMap, tool: str, place: Fields, key: str) -> str:
    """
    A rater's name: as the mapping says for one of the names the tool knows them by, else an e-mail address,
    else tool and id. Somebody whom the tool does not name stands in the mapping under "", or is refused.
    """
    known: list[str] = []
    for name in names:
        if isinstance(name, bool) or not isinstance(name, str | int | None):
            raise place.refuse(key, f"must be an id or an address, not {shown(name)}")
        known += [str(name).strip()] if name is not None and str(name).strip() else []
    for name in known or [""]:
        if name in mapping.raters:
            return mapping.raters[name]
    if not known:
        raise place.refuse(key, 'names nobody; say in the mapping who that is: {"raters": {"": "NAME"}}')
    address = next((name for name in known if "@" in name), f"{tool} {known[0]}")
    if len(address) > NAME_LIMIT:
        raise place.refuse(key, f"is longer than {NAME_LIMIT} characters")
    return address


def labels_of(chat_id: str, given: Given, mapping: ForeignMap, tally: Tally) -> list[LabelLine]:
    """What one person's answers about a chat amount to; nothing where none of them is an answer."""
    answers: dict[str, bool | None] = {}
    comments: dict[str, str] = {}
    for criterion in mapping.criteria:
        choices = flat(given.values.get(criterion.question), given, criterion.question)
        if choices:
            tally.met.add(criterion.key)
        if found := answers_in(criterion, choices, tally.unknown):
            answers[criterion.key] = found.pop()
        if criterion.comment:
            texts = flat(given.values.get(criterion.comment), given, criterion.comment)
            comments[criterion.key] = "\n".join(str(text) for text in texts)
    tally.passed["comments without an answer"] += sum(
        bool(text.strip()) for key, text in comments.items() if key not in answers
    )
    return [
        LabelLine(
            chat_id=chat_id,
            criterion=key,
            rater=given.rater,
            value=value,
            rationale=comments.get(key, ""),
            turns=(),
            evidence=(),
            kind="",
            post_reveal=False,
            version=None,
            created_at=given.at,
            active_ms=_active_ms(given.seconds, len(answers)),
        )
        for key, value in answers.items()
    ]


def latest_only(
    people: Callable[[Tally], Iterator[tuple[int, Sequence[LabelLine]]]], tally: Tally
) -> Iterator[tuple[int, LabelLine]]:
    """
    Record numbers and labels; of a rater's several answers to one chat, wherever they stand, the latest.

    Parameters
    ----------
    people : reads the export: record numbers, and the labels of one person on one chat.
    tally : counts what the second reading passes over.
    """
    latest: dict[tuple[str, str], tuple[datetime, int]] = {}
    for place, (_, labels) in enumerate(people(Tally())):
        first = labels[0]
        found = first.created_at or EARLIEST, place
        latest[first.chat_id, first.rater] = max(found, latest.get((first.chat_id, first.rater), found))
    for place, (number, labels) in enumerate(people(tally)):
        if latest[labels[0].chat_id, labels[0].rater][1] == place:
            yield from ((number, label) for label in labels)
        else:
            tally.passed[EARLIER] += 1


def flat(value: Any, given: Given, question: str) -> list[Any]:
    """
    Choices, ratings, numbers and texts in one list, however the tool wraps them.

    Examples
    --------
    >>> flat([{"choices": ["kind"]}, "rude"], Given("ada", {}), "tone")
    ['kind', 'rude']
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [one for part in value for one in flat(part, given, question)]
    if isinstance(value, dict):
        held = next((name for name in _VALUES if name in value), None)
        if held is None:
            place = f"{given.path}.{question}" if given.path else question
            raise FieldProblem(place, f"holds no choice, rating, number or text: {shown(value)}")
        return flat(value[held], given, question)
    return [value]


def _active_ms(seconds: float | None, answers: int) -> int | None:
    """Each answer's equal share of the time that the person took for the chat."""
    return None if seconds is None else min(round(seconds * 1000 / answers), HOUR_MS)
