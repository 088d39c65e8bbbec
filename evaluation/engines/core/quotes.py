"""Checks the quotes of a rationale or brief against the messages they name."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rapidfuzz import fuzz, process

from common.citations import APOSTROPHES, CITATION, QUOTED, Citation, Quoted, citations, quotes_in
from evaluation.core.transcript_fencing import MESSAGE_MARK, visible_text, without_invisible
from evaluation.core.types import Chat

Match = Literal["verified", "close", "short", "missing"]

# A quote is close if three of four words stand in the message in this order. A misspelt word of five letters
# or more counts as the message's word that is this similar.
CLOSE_WORDS = 75
CLOSE_SPELLING = 80
_SPELT = 5

_RULE = re.compile(rf"\[\s*rule\s*:\s*({QUOTED})", re.IGNORECASE | re.DOTALL)
_MACHINE_MARK = re.compile(
    r"\[\s*(?:verified\b[^\]\n]{0,40}|not in m\d[^\]\n]{0,80}|(?:close|too short)\s*)\]", re.IGNORECASE
)
_ELLIPSIS = re.compile(r"[\[(]?(?:[…⋯]|\.\s?\.(?:\s?\.)*)+[\])]?")

_DASHES = dict.fromkeys("‐‑‒–—―−﹘", "-")
_FOLDED = str.maketrans(dict.fromkeys(APOSTROPHES, "'") | _DASHES)
_LIST_NUMBER = re.compile(r"^\s*\d{1,3}[.)]\s", re.MULTILINE)
_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
_LINE_MARK = re.compile(rf"\b{MESSAGE_MARK}\|")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Letters and digits, with the vowel signs and accents that \w does not match.
_SIGNS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u0900-\u0963\u0966-\u0dff"
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_SIGNS}])"
_WORD = re.compile(rf"(?<!\w)-?\d+(?:[.,:]\d+)*(?!\w)|[{_UNSPACED}]|{_LETTER}+(?:'{_LETTER}+)*|[%‰°$¢£¤¥₠-⃀]")
_IN_UNSPACED = re.compile(f"[{_UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote, the messages that it names, and whether one of them has these words.

    `verified`: the words stand there in this order. `close`: similar words do; such a quote is neither
    verified nor invented. `short`: they do, but a single word proves nothing. `missing`: none of these.
    """

    messages: tuple[int, ...]
    words: str
    match: Match

    @property
    def found(self) -> bool:
        """Return whether the quote is verified."""
        return self.match == "verified"

    @property
    def mark(self) -> str:
        """Return the machine's mark for the Judge."""
        if self.match == "missing":
            return f"[not in {_names(self.messages)}]"
        return "[too short]" if self.match == "short" else f"[{self.match}]"


def find_quotes(*, text: str, chat: Chat) -> tuple[Quote, ...]:
    """Return every quote of every citation in `text`, looked up in the chat.

    Examples
    --------
    >>> [quote.messages for quote in find_quotes(text='[m12: "still waiting"]', chat=Chat("h", ()))]
    [(12,)]
    """
    return tuple(quote for citation in citations(text) for quote in _looked_up(citation, chat=chat))


def mark_quotes(*, text: str, chat: Chat) -> str:
    """Return `text` with `[verified]`, `[close]`, `[too short]` or `[not in m7]` after each citation.

    A citation of several quotes becomes one for each. Such marks in the original text are removed first: only
    this function may set them.
    """
    clean = _MACHINE_MARK.sub("[mark removed]", text)
    parts: list[str] = []
    end = 0
    for citation in citations(clean):
        parts += (clean[end : citation.start], _marked(clean, citation, chat=chat))
        end = citation.end
    return "".join([*parts, clean[end:]])


def without_quotes(text: str) -> str:
    """Return `text` without its citations: the writer's own words.

    Examples
    --------
    >>> without_quotes('It says [m2: "I admit it"] there.')
    'It says  there.'
    """
    return CITATION.sub("", text)


def names_rule(*, text: str, sources: Iterable[str]) -> bool:
    """Return whether `text` cites, as `[rule: "words"]`, words of one of the `sources`."""
    rules = [rule for cited in _RULE.finditer(text) for rule in quotes_in(cited[1])]
    return any(match_in(rule, source) == "verified" for source in sources for rule in rules)


def match_in(quote: str, content: str) -> Match:
    """Return how the words of a quote stand in a message.

    Only words count, not case, punctuation, Markdown or invisible characters. An ellipsis stands for left-out
    words: the pieces must follow in order, and one needs two words. A number must be exact. In scripts
    without spaces two characters count as a word. A message of one word can be quoted whole.

    Examples
    --------
    >>> [match_in(quote, "Sorry, we **can't** refund.") for quote in ("we can’t refund", "Sorry", "we can")]
    ['verified', 'short', 'missing']
    """
    versions = (content, visible_text(content), _LIST_NUMBER.sub("", content))
    texts = {_words(version) for version in versions}
    words = _words(quote)
    if words in texts:
        return "verified" if words or quote.strip() == content.strip() else "missing"
    pieces = [piece for part in _ELLIPSIS.split(quote) if (piece := _words(part))]
    if any(_in_order([words], text) for text in texts):
        return "verified" if _is_long_enough(words) else "short"
    if any(_in_order(pieces, text) for text in texts) and any(map(_is_long_enough, pieces)):
        return "verified"
    return "close" if any(_is_close(pieces, text) for text in texts) else "missing"


@lru_cache(maxsize=512)  # a message is quoted several times
def _words(text: str) -> tuple[str, ...]:
    """Return the words, numbers and signs of money or percent in a text, without case."""
    plain = unicodedata.normalize("NFKC", without_invisible(text)).casefold().translate(_FOLDED)
    return tuple(_WORD.findall(_LINE_MARK.sub(" ", _LINK_TARGET.sub("] ", plain))))


def _is_long_enough(words: Sequence[str]) -> bool:
    unspaced = sum(bool(_IN_UNSPACED.match(word)) for word in words)
    return 2 * (len(words) - unspaced) + unspaced >= 4


def _in_order(pieces: Sequence[Sequence[str]], text: Sequence[str]) -> bool:
    """Return whether each piece stands in the text without gaps, after the piece before it."""
    joined, start = f" {' '.join(text)} ", 0
    for piece in pieces:
        at = joined.find(f" {' '.join(piece)} ", start)
        if at < 0 or not piece:
            return False
        start = at + len(" ".join(piece)) + 1
    return bool(pieces)


def _is_close(pieces: Sequence[Sequence[str]], text: Sequence[str]) -> bool:
    if not pieces or not _is_long_enough([word for piece in pieces for word in piece]):
        return False
    text = _uncontracted(text)
    known = set(text)
    numbers = {word for piece in pieces for word in piece if any(map(str.isdecimal, word))}
    return numbers <= known and all(_similarity(piece, text, known) >= CLOSE_WORDS for piece in pieces)


def _similarity(piece: Sequence[str], text: Sequence[str], known: set[str]) -> float:
    """Return the percentage of the words that stand in this order in the most similar part of the text."""
    words = [_as_spelt(word, text, known) for word in _uncontracted(piece)]
    margin = [""] * len(words)  # else a shorter part at either end would score higher
    return fuzz.partial_ratio(words, [*margin, *text, *margin], score_cutoff=CLOSE_WORDS)


def _uncontracted(words: Sequence[str]) -> list[str]:
    """Return the words with contractions in two, but not those that negate: "it's", not "can't"."""
    return [part for word in words for part in (word.split("'") if not word.endswith("n't") else [word])]


def _as_spelt(word: str, text: Sequence[str], known: set[str]) -> str:
    if word in known or len(word) < _SPELT or not word.isalpha():
        return word
    similar = process.extractOne(word, text, scorer=fuzz.ratio, score_cutoff=CLOSE_SPELLING)
    return similar[0] if similar else word


def _looked_up(citation: Citation, *, chat: Chat) -> tuple[Quote, ...]:
    return tuple(Quote(one.messages, one.words, _best(one, chat=chat)) for one in citation.quotes)


def _best(quote: Quoted, *, chat: Chat) -> Match:
    named = (message.content for message in chat.messages if message.n in quote.messages)
    matches = {match_in(quote.words, content) for content in named}
    order: tuple[Match, ...] = ("verified", "close", "short")
    return next((match for match in order if match in matches), "missing")


def _marked(text: str, citation: Citation, *, chat: Chat) -> str:
    quotes = _looked_up(citation, chat=chat)
    if len(quotes) == 1:
        return f"{text[citation.start : citation.end]} {quotes[0].mark}"
    return " ".join(f'[{_names(quote.messages)}: "{quote.words}"] {quote.mark}' for quote in quotes)


def _names(messages: Iterable[int]) -> str:
    return ", ".join(f"m{n}" for n in messages)
