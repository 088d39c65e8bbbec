"""Engine debate: the advocates write in parallel, unseen by each other; then an impartial Judge decides."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import factorial

from evaluation.core.transcript_fencing import leak_flags
from evaluation.core.types import Chat, Criterion, Reply, Role, VerdictResult
from evaluation.engines.core.advocate_checks import brief_flags, length_flags
from evaluation.engines.core.direct import plain_verdict
from evaluation.engines.core.prose import by_criterion, join_sections, text_on
from evaluation.engines.core.quotes import mark_quotes
from evaluation.engines.core.reading import from_failed_reply, is_empty
from evaluation.engines.core.roles import ADVOCATES, JudgeRole, final_role, role_of, side_of
from evaluation.engines.core.session import Session
from evaluation.engines.core.verdicts import read_answer
from evaluation.knowledge.core.retrieval import retrieve_for
from evaluation.prompts.core import brief_parts


@dataclass(frozen=True, slots=True)
class Brief:
    """An advocate's case as the Judge reads it.

    Attributes
    ----------
    text : None if the advocate gave no brief.
    stop : a reply that ends the debate.
    verdicts : verdicts that the advocate gave against its instructions, by key.
    leaks : flags that say that it repeated the canary.
    """

    advocate: JudgeRole
    text: str | None
    stop: Reply | None = None
    verdicts: Mapping[str, bool | None] = field(default_factory=dict)
    leaks: tuple[str, ...] = ()


Briefs = tuple[Brief, ...]


async def judge_by_debate(session: Session) -> tuple[VerdictResult, ...]:
    """Collect all briefs at once, check their quotes by rule, then ask the Judge.

    An ablation (`setup.ablation`) omits the briefs, uses those of another chat, or swaps their order.
    """
    briefs = await _all_briefs(session)
    stops = [brief.stop for brief in briefs if brief.stop]
    if stops:
        return tuple(_stopped(key, _decisive(stops)) for key in session.keys)
    ordered = _ordered(session, briefs)
    judge = final_role("debate")
    reply = await session.reason(judge, evidence=_evidence(session, judge, ordered))
    readings = await session.read(reply)
    verdicts = []
    for criterion in session.criteria:
        reading = readings[criterion.key]
        verdict = plain_verdict(session, criterion.key, reading, reply=reply)
        flags = (*_brief_flags(session, briefs, criterion), *verdict.flags)
        verdicts.append(
            replace(
                verdict,
                sided_with=side_of(reading.value, criterion=criterion) if reading.state == "read" else "",
                first_brief=ordered[0].advocate.key,
                flags=tuple(dict.fromkeys(flags)),
            )
        )
    return tuple(verdicts)


async def _all_briefs(session: Session) -> Briefs:
    """Ask every advocate at once. If one call breaks, the others end first: their answers are paid for."""
    author = await _author(session)
    if author is None:
        return tuple(Brief(advocate=advocate, text=None) for advocate in ADVOCATES)
    calls = (_brief(author, advocate, judged=session.chat) for advocate in ADVOCATES)
    ended = await asyncio.gather(*calls, return_exceptions=True)
    for result in ended:
        if isinstance(result, BaseException):
            raise result
    return tuple(result for result in ended if isinstance(result, Brief))


async def _author(session: Session) -> Session | None:
    """Return the session in which briefs are written; None if the ablation omits them.

    Placebo briefs use the other chat's own requests, so that its stored answers are reused.
    """
    if session.setup.ablation == "placebo_briefs":
        other = session.other_chat
        return None if other is None else await _session_for(other, session)
    return None if session.setup.ablation == "no_briefs" else session


async def _session_for(other: Chat, session: Session) -> Session:
    """Return the session as the other chat's own debate has it; its calls count in `session`."""
    retrieval = await retrieve_for(
        chat=other, criteria=session.criteria, setup=session.setup, embedder=session.embedder
    )
    return replace(session, chat=other, note=(), passages=retrieval.passages)


def _decisive(stops: list[Reply]) -> Reply:
    """Return the reply that names the outcome: too long is permanent, a failure may pass."""
    return next((reply for reply in stops if reply.state == "too_long"), stops[0])


async def _brief(session: Session, advocate: JudgeRole, *, judged: Chat) -> Brief:
    """Ask one advocate, once more after a refusal or an unusable brief. No other one replaces its own."""
    reply = await session.reason(advocate.key)
    text = _usable(reply, session=session, judged=judged)
    if text is None and reply.state in ("answered", "refused") and not is_empty(reply):
        reply = await session.reason(advocate.key, again=True)
        text = _usable(reply, session=session, judged=judged)
    ended = reply.state in ("failed", "too_long") and not is_empty(reply)
    return Brief(
        advocate=advocate,
        text=text,
        stop=reply if ended else None,
        verdicts=read_answer(reply.text, criteria=session.criteria).values if text else {},
        leaks=leak_flags(reply.text, secret=session.fence_secret),
    )


def _usable(reply: Reply, *, session: Session, judged: Chat) -> str | None:
    """Return the brief without verdicts and other criteria, its quotes checked; None if no text remains.

    Quotes are looked up in the judged chat, even if the brief was written for another one.
    """
    if reply.state != "answered":
        return None
    prose = read_answer(reply.text, criteria=session.criteria).prose
    text = join_sections(by_criterion(prose, keys=session.keys))
    return mark_quotes(text=text, chat=judged) or None


def _ordered(session: Session, briefs: Briefs) -> Briefs:
    """Return the briefs in an order that depends on the judge's seed and the chat."""
    digest = hashlib.sha256(f"{session.setup.order_seed}:{session.chat.content_hash}".encode()).digest()
    orders = list(permutations(briefs))
    ordered = orders[digest[0] % factorial(len(briefs))]
    return ordered[::-1] if session.setup.ablation == "swapped_order" else ordered


def _evidence(session: Session, judge: Role, ordered: Sequence[Brief]) -> tuple[str, ...]:
    """Return the parts of all briefs in this order."""
    if "briefs" not in role_of(judge).sees:
        return ()
    parts: tuple[str, ...] = ()
    for brief in ordered:
        parts += brief_parts(
            role=brief.advocate.key,
            mark=brief.advocate.mark,
            brief=brief.text,
            size=session.setup.size,
            fence_secret=session.fence_secret,
        )
    return parts


def _brief_flags(session: Session, briefs: Briefs, criterion: Criterion) -> tuple[str, ...]:
    """Return the flags of the briefs on one criterion: missing, against instructions, or much longer."""
    if session.setup.ablation == "no_briefs":
        return ()
    flags = _missing_flags(briefs)
    cases: dict[Role, str] = {
        brief.advocate.key: text_on(criterion.key, text=brief.text, keys=session.keys)
        for brief in briefs
        if brief.text
    }
    for brief in briefs:
        flags += brief.leaks
        if brief.advocate.key in cases:
            flags += brief_flags(
                advocate=brief.advocate,
                text=cases[brief.advocate.key],
                verdicts=brief.verdicts,
                criterion=criterion,
                chat=session.chat,
            )
    return flags + (length_flags(cases) if len(cases) > 1 else ())


def _missing_flags(briefs: Briefs) -> tuple[str, ...]:
    missing = [brief.advocate.key for brief in briefs if brief.text is None]
    if not missing:
        return ()
    return (
        "no_briefs" if len(missing) == len(briefs) else "one_sided",
        *(f"no_{role}_brief" for role in missing),
    )


def _stopped(key: str, reply: Reply) -> VerdictResult:
    reading = from_failed_reply(reply)
    return VerdictResult(criterion=key, state=reading.state, explanation=reading.explanation)
