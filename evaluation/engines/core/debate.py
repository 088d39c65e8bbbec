"""Engine debate: two advocates in parallel, neither sees the other; then an impartial Judge."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from evaluation.core.transcript_fencing import leak_flags
from evaluation.core.types import Chat, Criterion, Reply, Side, VerdictResult
from evaluation.engines.core.conduct import brief_flags, case_on, length_flags
from evaluation.engines.core.direct import plain_verdict
from evaluation.engines.core.prose import by_criterion, joined
from evaluation.engines.core.quotes import mark_quotes
from evaluation.engines.core.reading import Reading, fallen, is_empty
from evaluation.engines.core.session import Session
from evaluation.engines.core.verdicts import read_answer
from evaluation.knowledge.core.retrieval import retrieve
from evaluation.prompts.core import Advocate, argued_answer, brief_parts


@dataclass(frozen=True, slots=True)
class Brief:
    """One side's case as the Judge reads it; None where the side brought none. `stop` ends the debate.

    `given` are verdicts that the side gave though it was told not to, `leaks` says that it gave the canary.
    """

    side: Advocate
    text: str | None
    stop: Reply | None = None
    given: Mapping[str, bool | None] = field(default_factory=dict)
    leaks: tuple[str, ...] = ()


async def judge_by_debate(session: Session) -> tuple[VerdictResult, ...]:
    """Collect both briefs at the same time, let a machine check their quotes, then ask the Judge.

    An ablation (`setup.ablation`) leaves the briefs out, takes those of another chat, or swaps their order.
    """
    briefs = await _both_briefs(session)
    stops = [brief.stop for brief in briefs if brief.stop]
    if stops:
        return tuple(_stopped(key, fallen(_decisive(stops))) for key in session.keys)
    ordered = _ordered(session, briefs)
    reply = await session.reason("judge", evidence=_evidence(session, ordered))
    readings = await session.read(reply)
    verdicts = []
    for criterion in session.criteria:
        verdict = plain_verdict(session, criterion.key, readings[criterion.key], reply=reply)
        flags = (*_brief_flags(session, briefs, criterion), *verdict.flags)
        verdicts.append(
            replace(
                verdict,
                sided_with=_sided_with(criterion, readings[criterion.key]),
                first_brief=ordered[0].side,
                flags=tuple(dict.fromkeys(flags)),
            )
        )
    return tuple(verdicts)


async def _both_briefs(session: Session) -> tuple[Brief, Brief]:
    """Ask both advocates at once. If one call breaks, the other ends first: its answer is paid for."""
    author = _author(session)
    if author is None:
        return Brief(side="customer", text=None), Brief(side="support", text=None)
    asked = (_brief(author, "customer", judged=session.chat), _brief(author, "support", judged=session.chat))
    customer, support = await asyncio.gather(*asked, return_exceptions=True)
    if isinstance(customer, BaseException):
        raise customer
    if isinstance(support, BaseException):
        raise support
    return customer, support


def _author(session: Session) -> Session | None:
    """Return the session in which briefs are written: None where the ablation leaves them out.

    Placebo briefs are asked as for the other chat itself, so that its stored answers serve.
    """
    if session.setup.ablation == "placebo_briefs":
        other = session.other_chat
        return None if other is None else _as_for(other, session)
    return None if session.setup.ablation == "no_briefs" else session


def _as_for(other: Chat, session: Session) -> Session:
    """Return the session as the other chat's own debate has it; calls are counted in the one given."""
    setup, passages = session.setup, session.passages
    if setup.knowledge == "retrieved":
        passages = retrieve(chat=other, criteria=session.criteria, tokens=setup.passage_tokens)
    return replace(session, chat=other, note=(), passages=passages)


def _decisive(stops: list[Reply]) -> Reply:
    """Return the reply that names the outcome: a chat that is too long stays so, a failure may pass."""
    return next((reply for reply in stops if reply.state == "too_long"), stops[0])


async def _brief(session: Session, side: Advocate, *, judged: Chat) -> Brief:
    """Ask one advocate; one that refused or said nothing is asked once more, never replaced by the other."""
    reply = await session.reason(side)
    text = _usable(reply, session=session, judged=judged)
    if text is None and (reply.state in ("answered", "refused") or is_empty(reply)):
        reply = await session.reason(side, again=True)
        text = _usable(reply, session=session, judged=judged)
    ended = reply.state in ("failed", "too_long") and not is_empty(reply)
    return Brief(
        side=side,
        text=text,
        stop=reply if ended else None,
        given=read_answer(reply.text, criteria=session.criteria).values if text else {},
        leaks=leak_flags(reply.text, secret=session.fence_secret),
    )


def _usable(reply: Reply, *, session: Session, judged: Chat) -> str | None:
    """Return the brief without verdicts and other criteria, its quotes checked; None if nothing is left.

    Quotes are looked up in the chat that is judged, whatever chat the brief was written for.
    """
    if reply.state != "answered":
        return None
    prose = read_answer(reply.text, criteria=session.criteria).prose
    text = joined(by_criterion(prose, keys=session.keys))
    return mark_quotes(text=text, chat=judged) or None


def _ordered(session: Session, briefs: tuple[Brief, Brief]) -> tuple[Brief, Brief]:
    """Return the briefs in an order drawn from the judge's seed and the chat."""
    drawn = hashlib.sha256(f"{session.setup.order_seed}:{session.chat.content_hash}".encode()).digest()
    customer_first = drawn[0] % 2 == 0
    if session.setup.ablation == "swapped_order":
        customer_first = not customer_first
    return briefs if customer_first else (briefs[1], briefs[0])


def _evidence(session: Session, ordered: tuple[Brief, Brief]) -> tuple[str, ...]:
    """Return the parts of both briefs in this order."""
    parts: tuple[str, ...] = ()
    for brief in ordered:
        parts += brief_parts(
            side=brief.side,
            brief=brief.text,
            size=session.setup.size,
            fence_secret=session.fence_secret,
        )
    return parts


def _brief_flags(session: Session, briefs: tuple[Brief, Brief], criterion: Criterion) -> tuple[str, ...]:
    """Return what to know of the briefs on one criterion: who is missing, left the duty or wrote more."""
    if session.setup.ablation == "no_briefs":
        return ()
    flags = _missing_flags(briefs)
    cases = {
        brief.side: case_on(criterion, text=brief.text, keys=session.keys) for brief in briefs if brief.text
    }
    for brief in briefs:
        flags += brief.leaks
        if brief.side in cases:
            flags += brief_flags(
                side=brief.side,
                text=cases[brief.side],
                given=brief.given,
                criterion=criterion,
                chat=session.chat,
            )
    return flags + (length_flags(**cases) if len(cases) == 2 else ())


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
