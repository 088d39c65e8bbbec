"""Evidence for an answer: whole messages, or passages by code points."""

from collections.abc import Iterable, Mapping
from typing import Any

LIMIT = 200  # parts of one answer


class EvidenceError(ValueError):
    """Evidence that does not exist in the chat."""


def evidence_of(
    *, turns: Iterable[int], parts: Iterable[Mapping[str, Any]], contents: Mapping[int, str]
) -> list[dict[str, Any]]:
    """
    Return evidence as stored: each message or passage once, in the chat's order.

    Parameters
    ----------
    turns : numbers of whole messages.
    parts : {"message", "start", "end"}; start and end count code points, end is exclusive; a "quote" must
        equal the text there. Without start and end the whole message.
    contents : message number → text.

    Raises EvidenceError for a message or a passage that the chat doesn't have.

    Examples
    --------
    >>> evidence_of(turns=[2], parts=[{"message": 1, "start": 0, "end": 2}], contents={1: "Hi!", 2: "Bye"})
    [{'n': 1, 'start': 0, 'end': 2, 'quote': 'Hi'}, {'n': 2}]
    """
    places: dict[tuple[int, int, int], dict[str, Any]] = {}
    for n in turns:
        _message(n, contents)
        places[n, -1, -1] = {"n": n}
    for part in parts:
        row = _part(part, contents)
        places[row["n"], row.get("start", -1), row.get("end", -1)] = row
    if len(places) > LIMIT:
        raise EvidenceError(f"More than {LIMIT} pieces of evidence.")
    return [places[place] for place in sorted(places)]


def _message(n: int, contents: Mapping[int, str]) -> str:
    if n not in contents:
        raise EvidenceError(f"The chat has no turn {n}.")
    return contents[n]


def _part(part: Mapping[str, Any], contents: Mapping[int, str]) -> dict[str, Any]:
    n, start, end = int(part["message"]), part.get("start"), part.get("end")
    content = _message(n, contents)
    if start is None and end is None:
        return {"n": n}
    if start is None or end is None or not 0 <= start < end <= len(content):
        raise EvidenceError(f"Turn {n} has no characters {start}–{end}.")
    quote = content[start:end]
    if part.get("quote") not in (None, quote):
        raise EvidenceError(f"The quote is not what turn {n} says at {start}–{end}.")
    return {"n": n, "start": start, "end": end, "quote": quote}
