"""Labels and adjudications in import lines."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.jsonl import KEY_LIMIT, NAME_LIMIT, Fields, Ignored, whole_number

MOST_MS = 2**31 - 1  # milliseconds that the database holds
RATER_KINDS = ("person", "automatic", "demo")
LABEL_FIELDS = frozenset(
    (
        *("chat_id", "criterion", "rater", "value", "rationale", "turns", "evidence"),
        *("kind", "post_reveal", "version", "created_at", "active_ms", "carried_from"),
    )
)
EVIDENCE_FIELDS = frozenset(("message", "start", "end", "quote"))
ANSWER_WORDS = {True: "true", False: "false", None: "not_applicable"}  # where an answer is text, as in CSV
ADJUDICATION_FIELDS = frozenset(
    ("chat_id", "criterion", "adjudicated_by", "value", "reason", "created_at", "carried_from")
)


@dataclass(frozen=True, slots=True)
class LabelLine:
    """A rater's answer, None = not applicable. Absent: `kind` "", None in the fields after it.

    `carried_from` is the key of the retired criterion that the rater answered, "" for none.
    """

    chat_id: str
    criterion: str
    rater: str
    value: bool | None
    rationale: str
    turns: tuple[int, ...]
    evidence: tuple[dict[str, Any], ...]
    kind: str
    post_reveal: bool
    version: int | None
    created_at: datetime | None
    active_ms: int | None
    carried_from: str = ""

    @property
    def cell(self) -> tuple[str, str, str]:
        """The key that may appear once in a file."""
        return self.chat_id, self.criterion, self.rater


@dataclass(frozen=True, slots=True)
class AdjudicationLine:
    """A lead's decision; value None = not applicable. `carried_from` as for labels."""

    chat_id: str
    criterion: str
    adjudicated_by: str
    value: bool | None
    reason: str
    created_at: datetime | None
    carried_from: str = ""

    @property
    def cell(self) -> tuple[str, str]:
        """The key that may appear once in a file."""
        return self.chat_id, self.criterion


def label_line_of(fields: Fields, ignored: Ignored | None = None) -> LabelLine:
    """
    Validate one label, except for what needs the chat.

    Raises FieldProblem.

    Examples
    --------
    >>> line = {"chat_id": "a", "criterion": "polite", "rater": "slot1", "value": None, "turns": [2]}
    >>> label_line_of(Fields(line)).turns
    (2,)
    """
    if ignored is not None and (unknown := fields.unknown(LABEL_FIELDS)):
        ignored.note(unknown)
    return LabelLine(
        chat_id=fields.text("chat_id", limit=KEY_LIMIT),
        criterion=fields.text("criterion"),
        rater=fields.text("rater", limit=NAME_LIMIT, blank=False),
        value=fields.answer("value"),
        rationale=fields.text("rationale") if fields.given("rationale") else "",
        turns=_turns(fields) if fields.given("turns") else (),
        evidence=_evidence(fields, ignored) if fields.given("evidence") else (),
        kind=fields.choice("kind", RATER_KINDS) if fields.given("kind") else "",
        post_reveal=fields.boolean("post_reveal") if fields.given("post_reveal") else False,
        version=fields.whole("version", low=1) if fields.given("version") else None,
        created_at=fields.moment("created_at"),
        active_ms=_active_ms(fields) if fields.given("active_ms") else None,
        carried_from=_carried_from(fields),
    )


def adjudication_line_of(fields: Fields, ignored: Ignored | None = None) -> AdjudicationLine:
    """
    Validate one adjudication, except for what needs the chat.

    Raises FieldProblem.

    Examples
    --------
    >>> line = {"chat_id": "a", "criterion": "polite", "adjudicated_by": "Ines", "value": True, "reason": "R"}
    >>> adjudication_line_of(Fields(line)).value
    True
    """
    if ignored is not None and (unknown := fields.unknown(ADJUDICATION_FIELDS)):
        ignored.note(unknown)
    return AdjudicationLine(
        chat_id=fields.text("chat_id", limit=KEY_LIMIT),
        criterion=fields.text("criterion"),
        adjudicated_by=fields.text("adjudicated_by", limit=NAME_LIMIT, blank=False),
        value=fields.answer("value"),
        reason=fields.text("reason", blank=False),
        created_at=fields.moment("created_at"),
        carried_from=_carried_from(fields),
    )


def _carried_from(fields: Fields) -> str:
    return fields.text("carried_from") if fields.given("carried_from") else ""


def _active_ms(fields: Fields) -> int:
    if (milliseconds := fields.whole("active_ms")) > MOST_MS:
        raise fields.refuse("active_ms", f"must be at most {MOST_MS:,}")
    return milliseconds


def _turns(fields: Fields) -> tuple[int, ...]:
    return tuple(
        whole_number(turn, fields.refuse, f"turns[{n}]", low=1)
        for n, turn in enumerate(fields.items("turns"))
    )


def _evidence(fields: Fields, ignored: Ignored | None) -> tuple[dict[str, Any], ...]:
    return tuple(
        _part(Fields(part, f"evidence[{n}]"), ignored) for n, part in enumerate(fields.items("evidence"))
    )


def _part(fields: Fields, ignored: Ignored | None) -> dict[str, Any]:
    if ignored is not None and (unknown := fields.unknown(EVIDENCE_FIELDS)):
        ignored.note(unknown, "evidence[].")
    part: dict[str, Any] = {"message": fields.whole("message", low=1)}
    for name in ("start", "end"):
        if fields.given(name):
            part[name] = fields.whole(name)
    if fields.given("quote"):
        part["quote"] = fields.text("quote")
    return part
