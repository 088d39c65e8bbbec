"""Argilla's exports: records with nested or flattened responses (2.x), or a list of them (1.x, server)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from common.jsonl import Fields
from labeling.rating.core.answers import LabelLine
from labeling.transfer.core.answers import (
    EARLIER,
    EARLIEST,
    Response,
    Tally,
    chat_id_of,
    labels_of,
    rater_name,
)
from labeling.transfer.core.mapping import ImportMapping

CHAT_ID = "id"  # the record's own id, unless the mapping names another field
SUBMITTED = "submitted"
_FLAT = ".responses"


@dataclass(frozen=True, slots=True)
class _QuestionResponse:
    """One rater's answer to one question, or (1.x) to several."""

    user: Any
    status: str | None
    values: dict[str, Any]
    place: Fields
    at: datetime | None = None


@dataclass(slots=True)
class _Person:
    values: dict[str, Any] = field(default_factory=dict)
    at: datetime | None = None


def argilla_lines(record: Fields, mapping: ImportMapping, tally: Tally) -> Iterable[list[LabelLine]]:
    """
    Return the labels of a record, a list per rater.

    For each question the latest response counts that is submitted or has no state. Raises FieldProblem.
    """
    by_rater: dict[str, _Person] = {}
    responses = sorted(_responses(record), key=lambda response: response.at or EARLIEST)
    tally.passed["records without a response"] += not responses
    for response in responses:
        if response.status not in (None, SUBMITTED):
            tally.passed[f"responses that are {response.status}"] += 1
            continue
        name = rater_name([response.user], mapping, "Argilla", response.place, "user_id")
        person = by_rater.setdefault(name, _Person())
        tally.passed[EARLIER] += not person.values.keys().isdisjoint(response.values)
        person.values |= response.values
        person.at = response.at or person.at
    chat_id = chat_id_of(record, mapping.chat_id or CHAT_ID)
    return [
        labels_of(chat_id, Response(rater, person.values, person.at), mapping, tally)
        for rater, person in by_rater.items()
    ]


def _responses(record: Fields) -> Iterator[_QuestionResponse]:
    responses = record.data.get("responses")
    if isinstance(responses, list):
        for n, row in enumerate(responses):
            yield _whole(Fields(row, f"responses[{n}]"))
    elif isinstance(responses, dict):
        for question, rows in responses.items():
            yield from _nested(question, rows)
    elif responses is None:
        yield from _flattened(record)
    else:
        record.mapping("responses")


def _whole(row: Fields) -> _QuestionResponse:
    values = row.mapping("values") if row.given("values") else {}
    fields = {name: Fields(value, f"{row.path}.values.{name}") for name, value in values.items()}
    return _QuestionResponse(
        user=row.data.get("user_id"),
        status=row.text("status") if row.given("status") else None,
        values={name: value.data.get("value") for name, value in fields.items()},
        place=row,
        at=row.moment("updated_at") or row.moment("inserted_at"),
    )


def _nested(question: str, rows: Any) -> Iterator[_QuestionResponse]:
    for n, data in enumerate(Fields({question: rows}, "responses").items(question)):
        row = Fields(data, f"responses.{question}[{n}]")
        status = row.text("status") if row.given("status") else None
        yield _QuestionResponse(row.data.get("user_id"), status, {question: row.data.get("value")}, row)


def _flattened(record: Fields) -> Iterator[_QuestionResponse]:
    """Read `QUESTION.responses`, `QUESTION.responses.users` and `QUESTION.responses.status` in parallel."""
    for name in sorted(name for name in record.data if name.endswith(_FLAT) and record.given(name)):
        values, users = record.items(name), record.items(f"{name}.users")
        states = record.items(f"{name}.status") if record.given(f"{name}.status") else [None] * len(values)
        if not len(values) == len(users) == len(states):
            raise record.refuse(name, "has not as many values as users and states")
        for value, user, status in zip(values, users, states, strict=True):
            yield _QuestionResponse(user, status, {name.removesuffix(_FLAT): value}, record)
