"""The three ways to a verdict: direct, reflection, debate."""

from collections.abc import Sequence

from evaluation.core.types import Chat, Criterion, GroupResult, Model, Setup

from .debate import judge_by_debate
from .direct import judge_directly
from .reflection import judge_by_reflection
from .session import Session

_ENGINES = {"direct": judge_directly, "reflection": judge_by_reflection, "debate": judge_by_debate}


async def judge_group(
    *, chat: Chat, criteria: Sequence[Criterion], setup: Setup, model: Model, fence_secret: bytes
) -> GroupResult:
    """Judge one chat on a group of criteria.

    Returns one verdict for each criterion, in the order given, whatever the model replies; every bad reply
    has a state of its own. `setup.roles` must hold each role of the engine and the formatter, else KeyError.
    The same replies lead to the same requests, so a repeated group asks a storing model nothing twice.
    """
    session = Session(chat=chat, criteria=criteria, setup=setup, model=model, fence_secret=fence_secret)
    verdicts = await _ENGINES[setup.engine](session)
    return GroupResult(verdicts=verdicts, calls=session.calls)


__all__ = ["judge_group"]
