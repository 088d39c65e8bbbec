"""Splits a chat that is too long for one call into windows, and joins their verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluation.core.transcript_fencing import render_message
from evaluation.core.types import Chat, Criterion, Size, VerdictResult, VerdictState, WindowRule, Windows
from evaluation.prompts.core.texts import some_texts

WINDOWS_VERSION = 1  # of splitting and joining
CHARACTERS_PER_TOKEN = 4  # English prose in common tokenisers

_RULES = {
    "any_fails": "the failing answer in any window decides",
    "last_decides": "the last window in which the criterion applies decides",
}


def split_into_windows(chat: Chat, windows: Windows) -> tuple[Chat, ...]:
    """Return the chat unchanged if its estimated tokens fit, else its windows of whole messages, in order.

    Messages keep their numbers. Neighbours share `overlap` messages, or fewer if a new message would not fit.
    A message longer than a window is a window of its own.

    Examples
    --------
    >>> from evaluation.core.types import Message
    >>> chat = Chat("h", tuple(Message(n, "user", "x" * 40) for n in range(1, 6)))
    >>> [[m.n for m in part.messages] for part in split_into_windows(chat, Windows(tokens=45, overlap=1))]
    [[1, 2, 3], [3, 4, 5]]
    """
    sizes = [len(render_message(message)) + 1 for message in chat.messages]
    room = windows.tokens * CHARACTERS_PER_TOKEN
    if sum(sizes) <= room:
        return (chat,)
    parts, start = [], 0
    while start < len(sizes):
        end = _end(sizes, start=start, room=room)
        parts.append(replace(chat, messages=chat.messages[start:end]))
        if end == len(sizes):
            break
        start = _start(sizes, new=end, overlap=windows.overlap, room=room)
    return tuple(parts)


def _end(sizes: Sequence[int], *, start: int, room: int) -> int:
    """Return where a window that starts here ends: after its first message at the earliest."""
    end, filled = start + 1, sizes[start]
    while end < len(sizes) and filled + sizes[end] <= room:
        filled += sizes[end]
        end += 1
    return end


def _start(sizes: Sequence[int], *, new: int, overlap: int, room: int) -> int:
    """Return where the window with the new message `new` starts: as early as overlap and room allow."""
    start, filled = new, sizes[new]
    while start > max(0, new - overlap) and filled + sizes[start - 1] <= room:
        start -= 1
        filled += sizes[start]
    return start


def part_note(parts: Sequence[Chat], *, window: int, size: Size) -> tuple[str, ...]:
    """Return the prompt's note on the shown window; nothing if the chat is whole."""
    if len(parts) == 1:
        return ()
    messages = parts[window].messages
    places = {
        "part": window + 1,
        "parts": len(parts),
        "first": messages[0].n,
        "last": messages[-1].n,
        "end": parts[-1].messages[-1].n,
    }
    return tuple(text.format_map(places) for text in some_texts(size, "part"))


@dataclass(frozen=True, slots=True)
class _Outcome:
    state: VerdictState
    value: bool | None


def join_windows(
    windows: Sequence[Sequence[VerdictResult]],
    *,
    criteria: Sequence[Criterion],
    parts: Sequence[Chat],
    rule: WindowRule,
) -> tuple[VerdictResult, ...]:
    """Return one verdict per criterion from the verdicts of each window.

    Parameters
    ----------
    windows : the verdicts of each window, criteria in the same order.
    criteria : in that order.
    parts : the windows' chats.
    rule : which window decides; the explanation states it.

    Returns
    -------
    The verdict of one window. The flag `from_window:N` names it, from 0; `windows:N` is their number. If a
    window has no verdict, the whole chat has none unless the rule decides without it.

    Raises
    ------
    ValueError : windows or criteria of different length.
    """
    return tuple(
        _join(verdicts, criterion=criterion, parts=parts, rule=rule)
        for criterion, verdicts in zip(criteria, zip(*windows, strict=True), strict=True)
    )


def _join(
    verdicts: Sequence[VerdictResult], *, criterion: Criterion, parts: Sequence[Chat], rule: WindowRule
) -> VerdictResult:
    fails = not criterion.passes_when
    decides = _deciding([_Outcome(v.state, v.value) for v in verdicts], rule=rule, fails=fails)
    verdict = verdicts[decides]
    words = (
        f"{_rule_text(verdict, rule=rule, fails=fails, parts=parts, window=decides)} {verdict.explanation}"
    )
    return replace(
        _with_first(verdict, verdicts, rule=rule, fails=fails),
        explanation=words.strip(),
        flags=(f"windows:{len(parts)}", f"from_window:{decides}", *verdict.flags),
        p_true=_p_true(verdicts, verdict, rule=rule, fails=fails),
    )


def _deciding(outcomes: Sequence[_Outcome], *, rule: WindowRule, fails: bool) -> int:
    """Return the window whose outcome is that of the whole chat; the first one if there are several.

    Among windows without a verdict a failed one comes first, because it can be asked again.
    """
    if rule == "last_decides":
        applies = [i for i, outcome in enumerate(outcomes) if outcome != _Outcome("read", None)]
        return applies[-1] if applies else 0
    failing = _Outcome("read", fails)
    if failing in outcomes:
        return outcomes.index(failing)
    unread = [i for i, outcome in enumerate(outcomes) if outcome.state != "read"]
    if unread:
        return min(unread, key=lambda i: outcomes[i].state != "failed")
    passing = _Outcome("read", not fails)
    return outcomes.index(passing) if passing in outcomes else 0


def _with_first(
    verdict: VerdictResult, verdicts: Sequence[VerdictResult], *, rule: WindowRule, fails: bool
) -> VerdictResult:
    """Return the verdict with the drafts' verdict on the whole chat, joined by the same rule."""
    drafts = [_Outcome(v.first_state, v.first_value) for v in verdicts if v.first_state is not None]
    if len(drafts) < len(verdicts):
        return verdict
    first = drafts[_deciding(drafts, rule=rule, fails=fails)]
    return replace(verdict, first_state=first.state, first_value=first.value)


def _rule_text(
    verdict: VerdictResult, *, rule: WindowRule, fails: bool, parts: Sequence[Chat], window: int
) -> str:
    """Return the rule and its result as a sentence."""
    messages = parts[window].messages
    here = f"window {window + 1}, messages {messages[0].n} to {messages[-1].n}"
    if verdict.state != "read":
        came = f"no verdict on {here}, and none is forced without it"
    elif verdict.value is None:
        came = "it applies in none"
    elif rule == "any_fails" and verdict.value is not fails:
        came = f"none failed; the first that passes is {here}"
    else:
        came = f"decided by {here}"
    return f"Judged in {len(parts)} overlapping windows; {_RULES[rule]}: {came}."


def _p_true(
    verdicts: Sequence[VerdictResult], verdict: VerdictResult, *, rule: WindowRule, fails: bool
) -> float | None:
    """Return P(True) of the deciding window: among those with its answer, the likeliest to fail."""
    if verdict.value is None or rule == "last_decides":
        return verdict.p_true
    agreeing = [v.p_true for v in verdicts if v.state == "read" and v.value is verdict.value]
    known = [p for p in agreeing if p is not None]
    if len(known) < len(agreeing):
        return None
    return max(known) if fails else min(known)
