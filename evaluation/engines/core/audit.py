"""Checks a share of the readable answers: does the prose reach the verdict that its block gives?"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from evaluation.core.types import VerdictResult
from evaluation.engines.core.session import Session
from evaluation.engines.core.verdicts import CopiedVerdict, read_answer, read_formatter

_ALL = 2**64


async def audit_verdicts(
    session: Session, verdicts: tuple[VerdictResult, ...], *, share: float
) -> tuple[VerdictResult, ...]:
    """Have the formatter read the last rationale without its block; flags say what came of it.

    Only what the rules could read is asked. `audited`: both agree; `audit_contradicts`: they do not;
    `audit_unclear`: the prose alone reaches no verdict, or the formatter gave none. No verdict changes.
    """
    reply = session.last_read
    if reply is None or not _selected(reply.text, share=share):
        return verdicts
    by_rule = {v.criterion for v in verdicts if v.state == "read" and v.read_by == "rules"}
    criteria = [criterion for criterion in session.criteria if criterion.key in by_rule]
    prose = read_answer(reply.text, criteria=criteria).prose
    if not criteria or not prose:
        return verdicts
    answer = await session.format(prose, criteria)
    copied = read_formatter(answer.text, criteria=criteria) if answer.state == "answered" else {}
    return tuple(
        replace(v, flags=(*v.flags, _flag(v, copied))) if v.criterion in by_rule else v for v in verdicts
    )


def _selected(text: str, *, share: float) -> bool:
    """Return whether this answer is among the share: by its hash, so that a repeated run draws the same."""
    digest = hashlib.sha256(f"audit:{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) < share * _ALL


def _flag(verdict: VerdictResult, copied: Mapping[str, CopiedVerdict]) -> str:
    verdict_copy = copied.get(verdict.criterion)
    if verdict_copy is None:
        return "audit_unclear"
    return "audited" if verdict_copy.value is verdict.value else "audit_contradicts"
