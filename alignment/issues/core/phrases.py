"""Words and phrases of rationales."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from common.citations import citations
from common.search.words import plain_words

LONGEST_TEXT = 4_000
READ_FOR_PHRASES = 60  # texts of a cluster, the most typical ones
LONGEST_PHRASE = 14  # words
GROWS_FROM = 0.7  # share of a phrase's places with the same neighbour
NAMES_FROM, NAME_WORDS = 0.4, 3  # a phrase in this share of the texts, with so many words, goes first
# Parts of a rationale that say nothing about the problem: see evaluation/prompts/roles.
_OTHER_PARTS = re.compile(
    r"^[ \t*]*(?:Evidence[*]*:[ \t*]*|(?:Against|Rule|Conclusion)[*]*:.*\n?)", re.MULTILINE | re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?;:\n。！？；：]+(?!\w)")
_WORD = re.compile(r"[^\W_]+")
# Words that no phrase ends with, and that are none by themselves.
_LINKS = frozenset(
    (
        *("a", "an", "the", "of", "to", "in", "on", "at", "for", "from", "with", "by", "as", "and", "or"),
        *("but", "is", "are", "was", "that", "which", "who", "if", "than", "it", "this"),
        *("der", "die", "das", "den", "dem", "ein", "eine", "und", "oder", "von", "zu", "im", "mit", "auf"),
        *("ist", "le", "la", "les", "un", "une", "de", "des", "du", "et", "ou", "el", "los", "las", "una"),
        *("y", "o", "con", "en", "para", "por", "que"),
    )
)
Phrase = tuple[str, ...]


def terms_of(text: str) -> list[str]:
    """Return the words of a rationale and each pair of neighbours, without numbers and marks of messages.

    Of a rationale in the form that the judge's prompt asks for, only what it says under Evidence.

    >>> terms_of('No refund date. [m2: "3 days"]')
    ['no', 'refund', 'date', 'days', 'no refund', 'refund date', 'date days']
    >>> terms_of("Evidence: No date.\\nAgainst: Nothing else.\\nConclusion: FALSE.")
    ['no', 'date', 'no date']
    """
    words = _words(" ".join(_pieces(text)))
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def text_to_compare(text: str) -> str:
    """Return what `terms_of` reads as one text: what an embedding is asked for; "" without a word.

    >>> text_to_compare('Evidence: [m2: "3 days"] No date.\\nRule: The first.')
    '3 days No date.'
    """
    joined = " ".join(" ".join(_pieces(text)).split())
    return joined if _WORD.search(joined) else ""


def _pieces(text: str) -> list[str]:
    """Return the text between citations, and what they quote."""
    text = text[:LONGEST_TEXT]
    text = _OTHER_PARTS.sub("", text).strip() or text
    pieces, end = [], 0
    for one in citations(text):
        pieces += [text[end : one.start], *(quote.words for quote in one.quotes)]
        end = one.end
    return [*pieces, text[end:]]


def _words(text: str) -> list[str]:
    return [word for word in plain_words(text) if not word.isdigit()]


@dataclass(frozen=True, slots=True)
class Shared:
    """A phrase as it is written, and the positions of the texts that have it."""

    text: str
    texts: frozenset[int]


def grown_phrases(terms: Sequence[str], texts: Sequence[str]) -> list[Shared]:
    """Return terms with the words that nearly always stand beside them; phrases that name a problem first.

    Parameters
    ----------
    terms : a word or two words, as `terms_of` returns them, the best first.
    texts : the texts of a cluster, the most typical first.

    >>> said = ["Evidence: The order number was given before.", "The order number was given before, twice."]
    >>> [one.text for one in grown_phrases(["order", "twice"], said)]
    ['The order number was given before', 'twice']
    """
    sentences = [[_words(one) for one in _sentences(text)] for text in texts]
    found: dict[Phrase, frozenset[int]] = {}
    for term in terms:
        words = tuple(term.split())
        if any(_places(words, other) for other in found) or _LINKS.issuperset(words):
            continue
        phrase = _grown(words, sentences[:READ_FOR_PHRASES])
        for other in [other for other in found if _places(other, phrase)]:
            del found[other]
        found[phrase] = frozenset(
            number for number, parts in enumerate(sentences) if any(_places(phrase, part) for part in parts)
        )
    names = sorted(
        found,
        key=lambda one: len(one) < NAME_WORDS or len(found[one]) < NAMES_FROM * len(texts),
    )
    return [Shared(_as_written(one, texts, found[one]), found[one]) for one in names if found[one]]


def _sentences(text: str) -> Iterator[str]:
    for piece in _pieces(text):
        yield from _SENTENCE_END.split(piece)


def _places(phrase: Phrase, words: Sequence[str]) -> list[int]:
    """Return where a phrase begins in a sentence."""
    size, first = len(phrase), phrase[0]
    return [at for at, word in enumerate(words) if word == first and tuple(words[at : at + size]) == phrase]


def _grown(phrase: Phrase, texts: Sequence[Sequence[Sequence[str]]]) -> Phrase:
    sentences = [words for parts in texts for words in parts]
    while len(phrase) < LONGEST_PHRASE:
        places = [(words, at) for words in sentences for at in _places(phrase, words)]
        after = Counter(words[at + len(phrase)] for words, at in places if at + len(phrase) < len(words))
        before = Counter(words[at - 1] for words, at in places if at)
        (right, rights), (left, lefts) = _most(after), _most(before)
        if max(rights, lefts) < max(2, GROWS_FROM * len(places)):
            break
        phrase = (*phrase, right) if rights >= lefts else (left, *phrase)
    places = [(words, at) for words in sentences for at in _places(phrase, words)]
    ended = sum(at + len(phrase) == len(words) for words, at in places)
    while len(phrase) > 1 and phrase[-1] in _LINKS and ended < GROWS_FROM * len(places):
        phrase = phrase[:-1]
    return phrase


def _most(counts: Counter[str]) -> tuple[str, int]:
    return min(counts.items(), key=lambda one: (-one[1], one[0]), default=("", 0))


def _as_written(phrase: Phrase, texts: Sequence[str], having: frozenset[int]) -> str:
    """Return a phrase with the accents and capital letters of the first text that has it."""
    for sentence in _sentences(texts[min(having)]):
        written = [one for one in _WORD.finditer(sentence) if not one[0].isdigit()]
        words = _words(sentence)
        places = _places(phrase, words)
        if places and len(written) == len(words):
            last = written[places[0] + len(phrase) - 1]
            found = sentence[written[places[0]].start() : last.end()]
            if not any(map(str.isdigit, found)):
                return " ".join(found.split())
    return _joined(phrase)


def _joined(words: Sequence[str]) -> str:
    """Return words as a text; of scripts without spaces they are overlapping pairs of characters.

    >>> _joined(["没有", "有说", "说明"]), _joined(["parcel", "status"])
    ('没有说明', 'parcel status')
    """
    text = words[0]
    for before, word in pairwise(words):
        overlap = not before.isascii() and len(before) == len(word) == 2 and before[1] == word[0]
        text += word[1] if overlap else f" {word}"
    return text
