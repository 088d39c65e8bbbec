"""Labels from one rater's answers on one chat in another tool."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from common.jsonl import KEY_LIMIT, NAME_LIMIT, Fields
from common.problems import FieldProblem, shown
from labeling.rating.core.answers import LabelLine
from labeling.transfer.core.mapping import ImportMapping, UnknownChoices, answers_in, at_path

HOUR_MS = 3_600_000  # longest plausible time of one answer; beyond, the page was idle
DAY = 86_400  # seconds; longest plausible time of one chat
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
EARLIER = "earlier answers by the same rater on the same chat"
# Keys under which tools store answers, by kind of question.
_VALUES = ("choices", "rating", "number", "text")


@dataclass(slots=True)
class Tally:
    """Skipped answers with their reasons; `met`: the criteria with any choice in the file."""

    unknown: UnknownChoices = field(default_factory=UnknownChoices)
    passed: Counter[str] = field(default_factory=Counter)
    met: set[str] = field(default_factory=set)

    def notes(self, mapping: ImportMapping) -> tuple[str, ...]:
        """Return one line per reason."""
        passed = [f"skipped: {count:,} {what}" for what, count in sorted(self.passed.items()) if count]
        missed = [row for row in mapping.criteria if row.key not in self.met]
        return (*passed, *(f"no record answers {row.question!r} ({row.key})" for row in missed))


@dataclass(frozen=True, slots=True)
class Response:
    """One rater's response on one chat: question → stored value; time in seconds."""

    rater: str
    values: Mapping[str, Any]
    at: datetime | None = None
    seconds: float | None = None
    path: str = ""


def chat_id_of(record: Fields, path: str) -> str:
    """Return the chat id at a dotted path of a record; a number as its digits."""
    value = at_path(record.data, path)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise record.refuse(path, "is missing" if value is None else f"must be a chat id, not {shown(value)}")
    if len(str(value)) > KEY_LIMIT:
        raise record.refuse(path, f"is longer than {KEY_LIMIT} characters")
    return str(value)


def rater_name(
    names: Iterable[Any], mapping: ImportMapping, tool: str, place: Fields, key: str, *, as_is: bool = False
) -> str:
    """
    Return a rater's name: from the mapping of the tool's names, else the e-mail address, else tool and id.

    With `as_is` the name is no id, and needs no tool.

    An anonymous response needs an entry "" in the mapping; otherwise it raises FieldProblem.
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
        raise place.refuse(key, 'names no rater; add the rater to the mapping: {"raters": {"": "NAME"}}')
    address = next((name for name in known if as_is or "@" in name), f"{tool} {known[0]}")
    if len(address) > NAME_LIMIT:
        raise place.refuse(key, f"is longer than {NAME_LIMIT} characters")
    return address


def labels_of(chat_id: str, response: Response, mapping: ImportMapping, tally: Tally) -> list[LabelLine]:
    """Return the labels of one response; none where it has no answer."""
    answers: dict[str, bool | None] = {}
    comments: dict[str, str] = {}
    for criterion in mapping.criteria:
        choices = flat(response.values.get(criterion.question), response, criterion.question)
        if choices:
            tally.met.add(criterion.key)
        if values := answers_in(criterion, choices, tally.unknown):
            answers[criterion.key] = values.pop()
        if criterion.comment:
            texts = flat(response.values.get(criterion.comment), response, criterion.comment)
            comments[criterion.key] = "\n".join(str(text) for text in texts)
    tally.passed["comments without an answer"] += sum(
        bool(text.strip()) for key, text in comments.items() if key not in answers
    )
    return [
        LabelLine(
            chat_id=chat_id,
            criterion=key,
            rater=response.rater,
            value=value,
            rationale=comments.get(key, ""),
            turns=(),
            evidence=(),
            kind="",
            post_reveal=False,
            version=None,
            created_at=response.at,
            active_ms=_active_ms(response.seconds, len(answers)),
        )
        for key, value in answers.items()
    ]


def latest_only(
    responses: Callable[[Tally], Iterator[tuple[int, Sequence[LabelLine]]]], tally: Tally
) -> Iterator[tuple[int, LabelLine]]:
    """
    Yield record numbers and labels; of a rater's several responses on one chat, the latest.

    Parameters
    ----------
    responses : reads the export: record numbers, and the labels of one rater on one chat.
    tally : counts what the second reading skips.
    """
    latest: dict[tuple[str, str], tuple[datetime, int]] = {}
    for place, (_, labels) in enumerate(responses(Tally())):
        first = labels[0]
        rank = first.created_at or EARLIEST, place
        latest[first.chat_id, first.rater] = max(rank, latest.get((first.chat_id, first.rater), rank))
    for place, (number, labels) in enumerate(responses(tally)):
        if latest[labels[0].chat_id, labels[0].rater][1] == place:
            yield from ((number, label) for label in labels)
        else:
            tally.passed[EARLIER] += 1


def flat(value: Any, response: Response, question: str) -> list[Any]:
    """
    Return choices, ratings, numbers and texts in one list, regardless of their nesting.

    Examples
    --------
    >>> flat([{"choices": ["kind"]}, "rude"], Response("ada", {}), "tone")
    ['kind', 'rude']
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [one for part in value for one in flat(part, response, question)]
    if isinstance(value, dict):
        key = next((name for name in _VALUES if name in value), None)
        if key is None:
            place = f"{response.path}.{question}" if response.path else question
            raise FieldProblem(place, f"holds no choice, rating, number or text: {shown(value)}")
        return flat(value[key], response, question)
    return [value]


def _active_ms(seconds: float | None, answers: int) -> int | None:
    """Return each answer's equal share of the rater's time on the chat, in ms."""
    return None if seconds is None else min(round(seconds * 1000 / answers), HOUR_MS)
