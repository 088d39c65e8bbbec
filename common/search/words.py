"""Words of a text as an index keeps them: the same on every database, in any language."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

MOST_WORDS = 20_000  # of one text; PostgreSQL indexes at most 1 MB of them
LONGEST_WORD = 64
MOST_ASKED = 8

_MARKS = "".join(
    chr(code) for code in range(0x0370, 0x10000) if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
_WORD = re.compile(rf"(?:[^\W_]|[{re.escape(_MARKS)}])+")
# Thai, Lao, Burmese, Khmer, Japanese and Chinese: written without spaces between words.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+)"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
# Latin, Greek, Cyrillic, Hebrew, punctuation, symbols: no sign changes with its neighbours.
_APART = re.compile(
    "[\x00-\u02ff\u0370-\u0482\u048a-\u052f\u05d0-\u05ea\u1e00-\u20cf\u2100-\u2bff\ufe0f\U0001f000-\U0001f1ff\U0001f300-\U0001faff]*+"
)
_NON_ASCII = "u_"
_TITLE = "t_"


def plain_words(text: str) -> list[str]:
    """
    Return the words of a text in its order, without case and accents.

    Scripts without spaces between words give overlapping pairs of characters, and the last character.

    >>> plain_words("Où est l’ÉCHARPE?")
    ['ou', 'est', 'l', 'echarpe']
    >>> plain_words("退款申请")
    ['退款', '款申', '申请', '请']
    """
    if text.isascii() or _APART.fullmatch(text):
        words = text.translate(_SIGNS).split()
        too_long = len(max(words, key=len, default="")) > LONGEST_WORD
        return [word[:LONGEST_WORD] for word in words] if too_long else words
    words = []
    for run in _WORD.findall(_folded(text)):
        for part in filter(None, _UNSPACED.split(run)):
            if _UNSPACED.match(part):
                words += ["".join(pair) for pair in pairwise(part)]
                words.append(part[-1])
            else:
                words.append(part[:LONGEST_WORD])
    return words


def _folded(text: str) -> str:
    """Return a text without case, accents and other spellings of the same sign."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", folded))


class _Signs(dict[int, str]):
    """What each sign is in an index, found out once: four times as fast as the whole text in three forms."""

    def __missing__(self, code: int) -> str:
        self[code] = "".join(one if _WORD.match(one) else " " for one in _folded(chr(code)))
        return self[code]


_SIGNS = _Signs()


def index_words(texts: Iterable[str], *, title: str = "") -> str:
    """
    Return the distinct words of some texts as an index keeps them: [a-z0-9_]+, with a space between them.

    Words of the title are marked, so that a search may leave them out.

    >>> index_words(["Wo ist mein Geld?", "Ihr Geld"], title="Geld")
    'wo ist mein geld ihr t_geld'
    """
    found: dict[str, None] = {}
    for text in _joined(texts):
        words = plain_words(text)
        found |= dict.fromkeys(words if text.isascii() else map(_token, words))
        if len(found) >= MOST_WORDS:
            break
    found.update((_TITLE + _token(word), None) for word in plain_words(title))
    return " ".join(list(found)[:MOST_WORDS])


def _joined(texts: Iterable[str]) -> Iterator[str]:
    """Yield neighbours that are plain, and those that are not, as one text: less is done for each text."""
    for _, group in groupby(texts, str.isascii):
        yield "\n".join(group)


def beginnings(words: Sequence[str], *, titles: bool) -> list[list[str]]:
    """
    Return for each word that a user looks for the beginnings of index words of which one must occur.

    >>> beginnings(["geld"], titles=True)
    [['geld', 'u_67656c64', 't_geld', 't_u_67656c64']]
    """
    asked = []
    for word in list(dict.fromkeys(words))[:MOST_ASKED]:
        # A word with other letters may begin with plain ones: "sm" finds "smørrebrød".
        own = list(dict.fromkeys([_token(word), _encoded(word)]))
        asked.append([*own, *(_TITLE + one for one in own)] if titles else own)
    return asked


def asked_words(text: str) -> list[str]:
    """
    Return the words that a user looks for. One letter is a word in scripts without spaces only.

    >>> asked_words('"Refund" a 7 ***')
    ['refund', '7']
    >>> asked_words("退款")
    ['退款']
    """
    words = plain_words(text)
    longer = [word for word in words if len(word) > 1]
    return [word for word in words if len(word) > 1 or _stands_alone(word, longer)]


def _stands_alone(letter: str, longer: Sequence[str]) -> bool:
    """Whether one character is worth a search: a digit, or a letter that is not the end of a pair."""
    return letter.isdigit() or not (letter.isascii() or any(letter in word for word in longer))


def _token(word: str) -> str:
    return word if word.isascii() else _encoded(word)


def _encoded(word: str) -> str:
    return _NON_ASCII + word.encode("utf-8", "surrogatepass").hex()
