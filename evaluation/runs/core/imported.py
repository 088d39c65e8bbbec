"""Verdicts of an external judge as lines of a file."""

import hashlib
import json
from dataclasses import dataclass

from common.jsonl import KEY_LIMIT, Fields, Ignored
from evaluation.core.types import VerdictState

STATES: tuple[VerdictState, ...] = ("read", "unparsed", "refused", "cut_off", "too_long", "failed")
VERDICT_FIELDS = frozenset(("chat_id", "criterion", "judge", "value", "rationale", "p_true", "state"))
MODULUS = 2**256


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One verdict; value None with state read means not applicable."""

    chat_id: str
    criterion: str
    judge: str
    value: bool | None
    rationale: str
    p_true: float | None
    state: VerdictState

    @property
    def digest(self) -> int:
        """Return a number for the whole content.

        The sum modulo 2**256 over a file identifies its content in any order.
        """
        content = [self.chat_id, self.criterion, self.value, self.rationale, self.p_true, self.state]
        return int.from_bytes(hashlib.sha256(json.dumps(content).encode()).digest())


def verdict_line_of(fields: Fields, ignored: Ignored | None = None) -> VerdictLine:
    """Validate one verdict, as far as possible without the chat.

    Parameters
    ----------
    ignored : collects unknown fields.

    Raises
    ------
    FieldProblem : a missing or wrong field.

    Examples
    --------
    >>> verdict_line_of(Fields({"chat_id": "a", "criterion": "polite", "judge": "m", "value": True})).state
    'read'
    """
    if ignored is not None and (unknown := fields.unknown(VERDICT_FIELDS)):
        ignored.note(unknown)
    state = _state(fields)
    value = fields.answer("value") if state == "read" else fields.answer("value", default=None)
    if state != "read" and value is not None:
        raise fields.refuse("value", f"must be null where the state is {state}")
    return VerdictLine(
        chat_id=fields.text("chat_id", limit=KEY_LIMIT),
        criterion=fields.text("criterion"),
        judge=fields.text("judge", limit=KEY_LIMIT, blank=False),
        value=value,
        rationale=fields.text("rationale") if fields.given("rationale") else "",
        p_true=fields.share("p_true"),
        state=state,
    )


def _state(fields: Fields) -> VerdictState:
    if not fields.given("state"):
        return "read"
    word = fields.choice("state", STATES)
    return next(state for state in STATES if state == word)
