"""Engine direct: one pass."""

from evaluation.core.marks import leak_flags
from evaluation.core.prose import about
from evaluation.core.quotes import find_quotes
from evaluation.core.types import Reply, VerdictResult

from .reading import Reading, prose_flags
from .session import Session


async def judge_directly(session: Session) -> tuple[VerdictResult, ...]:
    """Ask once, read once."""
    reply = await session.reason("direct")
    readings = await session.read(reply)
    return tuple(plain_verdict(session, key, readings[key], reply=reply) for key in session.keys)


def plain_verdict(session: Session, key: str, reading: Reading, *, reply: Reply) -> VerdictResult:
    """Return a reading as a verdict, with the flags of the prose it rests on."""
    text = about(key, text=reply.text, keys=session.keys) or reply.text
    quotes = find_quotes(text=text, chat=session.chat)
    return VerdictResult(
        criterion=key,
        state=reading.state,
        value=reading.value,
        read_by=reading.read_by,
        explanation=reading.explanation,
        contradicts=reading.contradicts,
        flags=(
            *reading.flags,
            *prose_flags(text=text, chat=session.chat),
            *leak_flags(reply.text, secret=session.fence_secret),
        ),
        quotes=len(quotes),
        quotes_verified=sum(quote.found for quote in quotes),
    )
