"""Engine debate: two advocates in parallel, neither sees the other; then an impartial Judge."""

import asyncio
import hashlib
from dataclasses import dataclass, replace

from evaluation.core.prompts import Advocate, argued_answer, brief_parts
from evaluation.core.prose import by_criterion, joined
from evaluation.core.quotes import mark_quotes
from evaluation.core.types import Criterion, Reply, Side, VerdictResult
from evaluation.core.verdicts import read_answer

from .direct import plain_verdict
from .reading import Reading, fallen, is_empty
from .session import Session


@dataclass(frozen=True, slots=True)
class Brief:
    """One side's case as the Judge reads it; None where the side brought none. `stop` ends the debate."""

    side: Advocate
    text: str | None
    stop: Reply | None = None


async def judge_by_debate(session: Session) -> tuple[VerdictResult, ...]:
    """Collect both briefs at the same time, let a machine check their quotes, then ask the Judge."""
    briefs = await _both_briefs(session)
    stops = [brief.stop for brief in briefs if brief.stop]
    if stops:
        return tuple(_stopped(key, fallen(_decisive(stops))) for key in session.keys)
    reply = await session.reason("judge", evidence=_evidence(session, briefs))
    readings = await session.read(reply)
    flags = _missing_flags(briefs)
    verdicts = []
    for criterion in session.criteria:
        verdict = plain_verdict(session, criterion.key, readings[criterion.key], reply=reply)
        side = _sided_with(criterion, readings[criterion.key])
        verdicts.append(replace(verdict, sided_with=side, flags=flags + verdict.flags))
    return tuple(verdicts)


async def _both_briefs(session: Session) -> tuple[Brief, Brief]:
    """Ask both advocates at once. If one call breaks, the other ends first: its answer is paid for."""
    asked = (_brief(session, "customer"), _brief(session, "support"))
    customer, support = await asyncio.gather(*asked, return_exceptions=True)
    if isinstance(customer, BaseException):
        raise customer
    if isinstance(support, BaseException):
        raise support
    return customer, support


def _decisive(stops: list[Reply]) -> Reply:
    """Return the reply that names the outcome: a chat that is too long stays so, a failure may pass."""
    return next((reply for reply in stops if reply.state == "too_long"), stops[0])


async def _brief(session: Session, side: Advocate) -> Brief:
    """Ask one advocate; one that refused or said nothing is asked once more, never replaced by the other."""
    reply = await session.reason(side)
    text = _usable(reply, session=session)
    if text is None and (reply.state in ("answered", "refused") or is_empty(reply)):
        reply = await session.reason(side, again=True)
        text = _usable(reply, session=session)
    ended = reply.state in ("failed", "too_long") and not is_empty(reply)
    return Brief(side=side, text=text, stop=reply if ended else None)


def _usable(reply: Reply, *, session: Session) -> str | None:
    """Return the brief without verdicts and other criteria, its quotes checked; None if nothing is left."""
    if reply.state != "answered":
        return None
    prose = read_answer(reply.text, criteria=session.criteria).prose
    text = joined(by_criterion(prose, keys=session.keys))
    return mark_quotes(text=text, chat=session.chat) or None


def _evidence(session: Session, briefs: tuple[Brief, Brief]) -> tuple[str, ...]:
    """Return the parts of both briefs, in an order drawn from the judge's seed and the chat."""
    drawn = hashlib.sha256(f"{session.setup.order_seed}:{session.chat.content_hash}".encode()).digest()
    ordered = briefs if drawn[0] % 2 == 0 else briefs[::-1]
    parts: tuple[str, ...] = ()
    for brief in ordered:
        parts += brief_parts(
            side=brief.side,
            brief=brief.text,
            size=session.setup.size,
            fence_secret=session.fence_secret,
        )
    return parts


def _missing_flags(briefs: tuple[Brief, Brief]) -> tuple[str, ...]:
    missing = [brief.side for brief in briefs if brief.text is None]
    if not missing:
        return ()
    return ("one_sided" if len(missing) == 1 else "no_briefs", *(f"no_{side}_brief" for side in missing))


def _sided_with(criterion: Criterion, reading: Reading) -> Side:
    """Return whose answer the Judge reached: not applicable is neither's, no verdict is nobody's."""
    if reading.state != "read":
        return ""
    if reading.value is None:
        return "neither"
    customer_wins = reading.value is argued_answer(side="customer", criterion=criterion)
    return "customer" if customer_wins else "support"


def _stopped(key: str, reading: Reading) -> VerdictResult:
    return VerdictResult(criterion=key, state=reading.state, explanation=reading.explanation)
