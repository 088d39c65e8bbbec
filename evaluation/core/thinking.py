"""Separates a model's visible thinking from its answer: thinking is never read, quoted or sent on."""

import re
from typing import NamedTuple

_TAG = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reason|reflection_thoughts)"
_NAMES = rf"(?:<{{0}}{_TAG}>|\[{{0}}THINK\]|<\|{{1}}_THINKING\|>|<\|{{2}}_of_thought\|>)"
_OPENING = re.compile(rf"^[ \t]*{_NAMES.format('', 'START', 'begin')}", re.IGNORECASE | re.MULTILINE)
# A closing tag counts at the beginning or end of a line: a quoted one stands within a line.
_CLOSING_TAG = _NAMES.format("/", "END", "end")
_CLOSING = re.compile(rf"^[ \t]*{_CLOSING_TAG}|{_CLOSING_TAG}(?=[ \t]*$)", re.IGNORECASE | re.MULTILINE)
_HARMONY = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
_CHANNEL = re.compile(r"(?:<\|start\|>\w+)?<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
# Harmony whose special tokens the endpoint left out.
_BARE_HARMONY = re.compile(r"\s*analysis(?P<thinking>[^a-z].*)assistantfinal", re.DOTALL)
_END = re.compile(r"<\|(?:end|return|call)\|>\s*$")


class Parted(NamedTuple):
    """A model's answer, and the thinking before it; "" if there is none."""

    answer: str
    thinking: str


def part_thinking(text: str) -> Parted:
    """Split a text into answer and thinking.

    Knows the tags `<think>`, `<thinking>`, `<reasoning>` and their like, `[THINK]`, and the channels of
    Harmony (gpt-oss), with or without its special tokens. The answer follows the last closing tag, whether or
    not an opening one was sent. Behind an opening tag that is never closed everything is thinking.

    Examples
    --------
    >>> part_thinking("<think>Is it? FALSE.</think>\\n\\nIt is. TRUE")
    Parted(answer='It is. TRUE', thinking='Is it? FALSE.')
    >>> part_thinking("It is. TRUE")
    Parted(answer='It is. TRUE', thinking='')
    """
    if _HARMONY.match(text):
        return _by_channel(text)
    if untagged := _BARE_HARMONY.match(text):
        return Parted(text[untagged.end() :].strip(), untagged["thinking"].strip())
    closings = list(_CLOSING.finditer(text))
    if not closings and _OPENING.match(text.lstrip()):
        closings = list(re.finditer(_CLOSING_TAG, text, re.IGNORECASE))
    start = closings[-1].end() if closings else 0
    opening = _OPENING.search(text, start)
    end = opening.start() if opening else len(text)
    if not closings and not opening:
        return Parted(text, "")
    thinking = [text[: closings[-1].start()] if closings else "", text[opening.end() :] if opening else ""]
    bare = [_OPENING.sub("", _CLOSING.sub("", part)).strip() for part in thinking]
    return Parted(text[start:end].strip(), "\n\n".join(part for part in bare if part))


def _by_channel(text: str) -> Parted:
    """Return the last message of the channel `final`; all others are thinking."""
    starts = list(_CHANNEL.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    messages = [
        (match[1], _END.sub("", text[match.end() : end]).strip())
        for match, end in zip(starts, ends, strict=True)
    ]
    finals = [i for i, (channel, _) in enumerate(messages) if channel == "final"]
    last = finals[-1] if finals else None
    thinking = "\n\n".join(words for i, (_, words) in enumerate(messages) if i != last)
    return Parted("" if last is None else messages[last][1], thinking or ("" if messages else text))
