"""Audits a share of the readable answers: does the prose reach the verdict of its block?"""

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
    """Have the formatter read the last rationale without its block, and flag the result. No verdict changes.

    Only criteria that the rules could read are audited.

    Parameters
    ----------
    share : of all readable answers, 0 to 1.

    Returns
    -------
    The same verdicts with one more flag. `audited` : both agree. `audit_contradicts` : they differ.
    `audit_unclear` : the prose alone reaches no verdict, or the formatter gave none.
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
    """Return whether the answer belongs to the share, by its hash: the same in every run."""
    digest = hashlib.sha256(f"audit:{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) < share * _ALL


def _flag(verdict: VerdictResult, copied: Mapping[str, CopiedVerdict]) -> str:
    verdict_copy = copied.get(verdict.criterion)
    if verdict_copy is None:
        return "audit_unclear"
    return "audited" if verdict_copy.value is verdict.value else "audit_contradicts"
