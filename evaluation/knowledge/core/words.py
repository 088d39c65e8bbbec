"""The words of a text for retrieval: without function words, and reduced to stems of its language."""

import re
from collections import Counter
from functools import lru_cache

from evaluation.knowledge.core.synonyms import SYNONYMS

ENGLISH = "english"
# Languages with a stemmer and a list of function words; bm25s names the English list differently.
LANGUAGES = (
    *(ENGLISH, "danish", "dutch", "french", "german", "italian", "norwegian", "portuguese"),
    *("russian", "spanish", "swedish", "turkish"),
)
_LEAST_SHARE = 0.1  # of a text's words; with fewer function words the language is unknown
_WORD = re.compile(r"\w\w+")


def words_of(text: str) -> list[str]:
    """Return the words of at least two characters in lower case.

    Examples
    --------
    >>> words_of("I'm late: 2 days!")
    ['late', 'days']
    """
    return _WORD.findall(text.casefold())


def language_of(text: str) -> str:
    """Return the language whose function words occur most often; English if none make up a tenth.

    Examples
    --------
    >>> language_of("Der Versand ist ab einem Wert von 80 Euro kostenlos.")
    'german'
    >>> language_of("Tips, codes, refunds")
    'english'
    """
    counts = Counter(words_of(text))
    found = {one: sum(counts[word] for word in function_words(one)) for one in LANGUAGES}
    best = max(LANGUAGES, key=lambda one: found[one])
    return best if found[best] >= _LEAST_SHARE * counts.total() else ENGLISH


def stems_of(text: str, language: str) -> list[str]:
    """Return the stems of a text's words, without the language's function words.

    Examples
    --------
    >>> stems_of("The deliveries were delivered", "english")
    ['deliveri', 'deliv']
    """
    dropped = function_words(language)
    return [_stem(word, language) for word in words_of(text) if word not in dropped]


@lru_cache(maxsize=len(LANGUAGES))
def synonyms_of(language: str) -> dict[str, frozenset[str]]:
    """Return by stem the stems that stand for the same thing; empty for a language without a list."""
    mates: dict[str, frozenset[str]] = {}
    for line in SYNONYMS.get(language, "").split("\n"):
        stems = frozenset(_stem(word, language) for word in line.split())
        for stem in stems:
            mates[stem] = mates.get(stem, frozenset()) | stems - {stem}
    return mates


@lru_cache(maxsize=len(LANGUAGES))
def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language."""
    from bm25s import stopwords  # only judges that retrieve need the library

    name = "EN_PLUS" if language == ENGLISH else language.upper()
    return frozenset(getattr(stopwords, f"STOPWORDS_{name}"))


@lru_cache(maxsize=50_000)
def _stem(word: str, language: str) -> str:
    from snowballstemmer import stemmer

    # A new one each time: a stemmer keeps the word it works on, so threads cannot share it.
    return str(stemmer(language).stemWord(word))
