"""The three engines: direct, reflection, debate; over samples and over the windows of a long chat."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace

from evaluation.core.types import Chat, Criterion, Embedder, GroupResult, Model, Setup, VerdictResult
from evaluation.engines.core.audit import audit_verdicts
from evaluation.engines.core.debate import judge_by_debate
from evaluation.engines.core.direct import judge_directly
from evaluation.engines.core.injection_detection import chat_flags
from evaluation.engines.core.reflection import judge_by_reflection
from evaluation.engines.core.sampling import majority
from evaluation.engines.core.session import Session
from evaluation.engines.core.windows import WINDOWS_VERSION, join_windows, part_note, split_into_windows
from evaluation.knowledge.core.retrieval import LEXICAL_ONLY, TRUE_WITHOUT_PASSAGE, Retrieval, retrieve_for

Verdicts = tuple[VerdictResult, ...]

_ENGINES = {"direct": judge_directly, "reflection": judge_by_reflection, "debate": judge_by_debate}


@dataclass(frozen=True, slots=True)
class _Group:
    """Data shared by all passes, which differ in sample and window only. `parts` are the chat's windows."""

    parts: tuple[Chat, ...]
    criteria: Sequence[Criterion]
    setup: Setup
    model: Model
    fence_secret: bytes
    retrieval: Retrieval
    other_chat: Chat | None
    embedder: Embedder | None


async def judge_group(
    *,
    chat: Chat,
    criteria: Sequence[Criterion],
    setup: Setup,
    model: Model,
    fence_secret: bytes,
    other_chat: Chat | None = None,
    audit: float = 0.0,
    embedder: Embedder | None = None,
) -> GroupResult:
    """Judge one chat on a group of criteria.

    Each of `setup.samples` passes covers each window of the chat; all run at once. Equal replies lead to
    equal requests, so a repeated group asks a model that stores answers nothing twice.

    Parameters
    ----------
    setup : `roles` must hold the engine's roles and the formatter.
    model : answers the requests.
    fence_secret : the workspace's secret for fences and canary.
    other_chat : another chat of the run, for placebo briefs.
    audit : share (0 to 1) of readable answers that the formatter reads once more.
    embedder : gives the vectors of a setup with an embedding model; without one passages are found by words.

    Returns
    -------
    One verdict per criterion, in the given order, whatever the model replies. Every bad reply has its own
    state.

    Raises
    ------
    KeyError : a role of the engine is missing in `setup.roles`.
    """
    group = _Group(
        parts=_parts(chat, setup),
        criteria=criteria,
        setup=setup,
        model=model,
        fence_secret=fence_secret,
        # The whole chat is searched once; its windows share the passages.
        retrieval=await retrieve_for(chat=chat, criteria=criteria, setup=setup, embedder=embedder),
        other_chat=_parts(other_chat, setup)[0] if other_chat else None,
        embedder=embedder,
    )
    sessions = [_session(group, i, j) for i in range(setup.samples) for j in range(len(group.parts))]
    passes = await _together(_judged(session, audit) for session in sessions)
    flags = chat_flags(chat) + ((LEXICAL_ONLY,) if group.retrieval.lexical_only else ())
    return GroupResult(
        verdicts=tuple(
            replace(verdict, flags=verdict.flags + flags + _silence_flags(group, criterion, verdict))
            for criterion, verdict in zip(criteria, _settled(group, passes), strict=True)
        ),
        calls=tuple(use for session in sessions for use in session.calls),
        passages=group.retrieval.passages,
    )


def _parts(chat: Chat, setup: Setup) -> tuple[Chat, ...]:
    return split_into_windows(chat, setup.windows) if setup.windows else (chat,)


def _silence_flags(group: _Group, criterion: Criterion, verdict: VerdictResult) -> tuple[str, ...]:
    """Flag a True on a criterion that reads knowledge and found no passage."""
    reads = criterion.articles or criterion.tier == "context"
    found = group.setup.knowledge != "retrieved" or group.retrieval.passages.get(criterion.key)
    return (TRUE_WITHOUT_PASSAGE,) if verdict.value and reads and not found else ()


def _session(group: _Group, sample: int, window: int) -> Session:
    return Session(
        chat=group.parts[window],
        criteria=group.criteria,
        setup=group.setup,
        model=group.model,
        fence_secret=group.fence_secret,
        sample=sample,
        window=window,
        note=part_note(group.parts, window=window, size=group.setup.size),
        passages=group.retrieval.passages,
        other_chat=group.other_chat,
        embedder=group.embedder,
    )


async def _judged(session: Session, audit: float) -> Verdicts:
    verdicts = await _ENGINES[session.setup.engine](session)
    return await audit_verdicts(session, verdicts, share=audit)


async def _together(passes: Iterable[Awaitable[Verdicts]]) -> list[Verdicts]:
    """Await all passes. If one breaks, the others end first: their answers are paid for."""
    first, *others = passes
    if not others:
        return [await first]
    ended = await asyncio.gather(first, *others, return_exceptions=True)
    for result in ended:
        if isinstance(result, BaseException):
            raise result
    return [result for result in ended if not isinstance(result, BaseException)]


def _settled(group: _Group, passes: list[Verdicts]) -> Verdicts:
    """Join the windows of each sample, then the samples."""
    setup, windows = group.setup, len(group.parts)
    samples = [passes[first : first + windows] for first in range(0, len(passes), windows)]
    if setup.windows and windows > 1:
        rule = setup.windows.rule
        joined = [join_windows(s, criteria=group.criteria, parts=group.parts, rule=rule) for s in samples]
    else:
        joined = [sample[0] for sample in samples]
    return majority(joined) if setup.samples > 1 else joined[0]


__all__ = ["WINDOWS_VERSION", "judge_group"]
