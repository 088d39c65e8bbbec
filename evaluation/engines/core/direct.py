"""Engine direct: one pass."""

from evaluation.core.transcript_fencing import leak_flags
from evaluation.core.types import Reply, VerdictResult
from evaluation.engines.core.probability import p_true
from evaluation.engines.core.prose import text_on
from evaluation.engines.core.quotes import find_quotes
from evaluation.engines.core.reading import Reading, prose_flags
from evaluation.engines.core.session import Session


async def judge_directly(session: Session) -> tuple[VerdictResult, ...]:
    """Ask once and read the answer."""
    reply = await session.reason("direct")
    readings = await session.read(reply)
    return tuple(plain_verdict(session, key, readings[key], reply=reply) for key in session.keys)


def plain_verdict(session: Session, key: str, reading: Reading, *, reply: Reply) -> VerdictResult:
    """Return a reading as a verdict, with the flags of its prose and its probability.

    Parameters
    ----------
    key : the criterion's key.
    reading : what the rules or the formatter read.
    reply : the answer that was read.
    """
    text = text_on(key, text=reply.text, keys=session.keys)
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
            *prose_flags(text=text, quotes=quotes),
            *leak_flags(reply.text, secret=session.fence_secret),
        ),
        quotes=len(quotes),
        quotes_verified=sum(quote.found for quote in quotes),
        quotes_close=sum(quote.match == "close" for quote in quotes),
        p_true=_probability(key, reading, reply),
    )


def _probability(key: str, reading: Reading, reply: Reply) -> float | None:
    """Return P(True) of what the rules read; an answer copied by the formatter has no tokens of its own."""
    if reply.logprobs is None or reading.value is None or reading.read_by != "rules":
        return None
    return p_true(reply.logprobs, key=key, value=reading.value)
