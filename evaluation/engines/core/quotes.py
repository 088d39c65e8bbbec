"""Checks the quotes of a rationale or brief against the messages they name."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from evaluation.core.transcript_fencing import visible_text, without_invisible
from evaluation.core.types import Chat

_OPEN, _CLOSE = "[\"“„«']", "[\"”“»']"
_QUOTE = re.compile(
    rf"\[\s*m0*(\d{{1,6}})\s*:\s*{_OPEN}(.{{1,600}}?){_CLOSE}\s*\]", re.IGNORECASE | re.DOTALL
)
_RULE = re.compile(rf"\[\s*rule\s*:\s*{_OPEN}(.{{1,600}}?){_CLOSE}\s*\]", re.IGNORECASE | re.DOTALL)
_MACHINE_MARK = re.compile(r"\[\s*(?:verified\b|not in m\d)[^\]\n]{0,40}\]", re.IGNORECASE)
_QUOTE_MARKS = str.maketrans(dict.fromkeys("‘’‚‛`´′", "'") | dict.fromkeys("“”„‟«»″", '"'))


@dataclass(frozen=True, slots=True)
class Quote:
    """A citation `[m7: "words"]`; `found` is True if message 7 contains these words."""

    n: int
    words: str
    found: bool


def find_quotes(*, text: str, chat: Chat) -> tuple[Quote, ...]:
    """Return every citation in `text`, looked up in the chat.

    Case, white space and quotation marks are ignored.

    Examples
    --------
    >>> [quote.n for quote in find_quotes(text='Late: [m12: "still waiting"]', chat=Chat("h", ()))]
    [12]
    """
    return tuple(_looked_up(match, chat=chat) for match in _QUOTE.finditer(text))


def mark_quotes(*, text: str, chat: Chat) -> str:
    """Return `text` with `[verified]` or `[not in m7]` after each citation.

    Such marks in the original text are removed first: only this function may set them.
    """
    clean = _MACHINE_MARK.sub("[mark removed]", text)
    return _QUOTE.sub(partial(_with_mark, chat=chat), clean)


def without_quotes(text: str) -> str:
    """Return `text` without its citations: the writer's own words.

    Examples
    --------
    >>> without_quotes('It says [m2: "I admit it"] there.')
    'It says  there.'
    """
    return _QUOTE.sub("", text)


def names_rule(*, text: str, sources: Iterable[str]) -> bool:
    """Return whether `text` cites, as `[rule: "words"]`, words of one of the `sources`."""
    folded = [fold(source) for source in sources]
    words = (fold(match[1]) for match in _RULE.finditer(text))
    return any(rule in source for rule in words if rule for source in folded)


def fold(text: str) -> str:
    """Return `text` for comparison: without case, extra space, quotation marks and end stop."""
    plain = unicodedata.normalize("NFKC", text.translate(_QUOTE_MARKS)).casefold()
    return " ".join(plain.split()).strip(" .,;:…")


def _looked_up(match: re.Match[str], *, chat: Chat) -> Quote:
    n, words = int(match[1]), fold(match[2])
    contents = [message.content for message in chat.messages if message.n == n]
    versions = [
        fold(version(content)) for content in contents for version in (without_invisible, visible_text)
    ]
    return Quote(n=n, words=match[2], found=bool(words) and any(words in text for text in versions))


def _with_mark(match: re.Match[str], *, chat: Chat) -> str:
    quote = _looked_up(match, chat=chat)
    return f"{match[0]} [verified]" if quote.found else f"{match[0]} [not in m{quote.n}]"
