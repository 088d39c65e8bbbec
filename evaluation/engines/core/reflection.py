"""Engine reflection: a direct draft, then an audit of it as if a colleague had written it."""

import re
from dataclasses import replace

from evaluation.core.types import Chat, Criterion, VerdictResult
from evaluation.engines.core.direct import plain_verdict
from evaluation.engines.core.prose import text_on
from evaluation.engines.core.quotes import find_quotes, names_rule
from evaluation.engines.core.reading import Reading, has_answer
from evaluation.engines.core.session import Session
from evaluation.prompts.core import draft_parts

_DECISION = re.compile(r"\b(KEEP|CHANGE)\b")


async def judge_by_reflection(session: Session) -> tuple[VerdictResult, ...]:
    """Draft as engine direct does, audit the draft once, and keep both verdicts."""
    draft = await session.reason("direct")
    first = await session.read(draft)
    if not has_answer(draft):
        return tuple(_undrafted(key, reading) for key, reading in first.items())
    evidence = draft_parts(draft=draft.text, size=session.setup.size, fence_secret=session.fence_secret)
    audit = await session.reason("reflector", evidence=evidence)
    final = await session.read(audit)
    verdicts = []
    for criterion in session.criteria:
        key = criterion.key
        verdict = plain_verdict(session, key, final[key], reply=audit)
        text = text_on(key, text=audit.text, keys=session.keys)
        flags = _change_flags(criterion, first[key], final[key], text=text, chat=session.chat)
        verdicts.append(_beside(first[key], replace(verdict, flags=verdict.flags + flags)))
    return tuple(verdicts)


def _undrafted(key: str, reading: Reading) -> VerdictResult:
    verdict = VerdictResult(criterion=key, state=reading.state, explanation=reading.explanation)
    return _beside(reading, verdict)


def _beside(first: Reading, verdict: VerdictResult) -> VerdictResult:
    return replace(verdict, first_state=first.state, first_value=first.value)


def _change_flags(
    criterion: Criterion, first: Reading, final: Reading, *, text: str, chat: Chat
) -> tuple[str, ...]:
    """Return what is odd about a change. The engine compares the verdicts and never reverts one."""
    if first.state != "read" or final.state != "read":
        return ()
    changed = first.value is not final.value
    decisions = {match[1] for match in _DECISION.finditer(text)}
    flags = []
    if changed and not _has_reason(criterion, text=text, chat=chat):
        flags.append("change_without_reason")
    if changed and decisions == {"KEEP"}:
        flags.append("keep_but_changed")
    if not changed and decisions == {"CHANGE"}:
        flags.append("change_but_kept")
    return tuple(flags)


def _has_reason(criterion: Criterion, *, text: str, chat: Chat) -> bool:
    articles = (article.text for article in criterion.articles)
    sources = (criterion.question, criterion.definition, criterion.prompt, *articles)
    return any(quote.found for quote in find_quotes(text=text, chat=chat)) or names_rule(
        text=text, sources=sources
    )
