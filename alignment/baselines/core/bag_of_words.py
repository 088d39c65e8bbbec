"""A bag of words that never answers on a chat it has learned from: what the mere words give away.

NB: scikit-learn is imported where it is used: it takes longer to start than a stored report to read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int8]
Places = NDArray[np.int64]

MOST_CHATS = 2_000
FOLDS = 5
FEWEST = 2
# So much of a chat is read. Longer ones are rare, and a few of them would take the memory of all the others.
MOST_CHARACTERS = 20_000
# A word or pair of words in fewer chats than this cannot be learned from.
MIN_CHATS_WITH_WORD = 2
# Words are hashed into so many columns: nothing is learned from a chat by counting its words.
COLUMNS = 2**20
NONE = -1


@dataclass(frozen=True)
class Labelled:
    """The chats that people answered some criterion on.

    Parameters
    ----------
    texts : each chat whole, as one text.
    alike : for each chat the number of its group of near-duplicates.
    people : by criterion key, for each chat: 1 True, 0 False, -1 neither.
    """

    texts: Sequence[str]
    alike: Sequence[int]
    people: dict[str, Codes]


@dataclass(frozen=True)
class OutOfFold:
    """A criterion's answers by chat (1 True, 0 False, -1 none), each from a model that did not see the chat.

    `folds` is 0 where there are none, for the `reason` given.
    """

    answers: Codes
    folds: int = 0
    reason: str = ""


def drawn_chats(people: Sequence[Codes], *, seed: int, most: int = MOST_CHATS) -> Places:
    """
    Places of the chats to learn from, in order: all that have an answer, or a draw of `most` of them.

    Drawn is every so-maniest chat when they are sorted by their answers, so that the answers of each
    criterion keep their shares; those with the rarest answers come first in that order.

    Parameters
    ----------
    people : one array a criterion, all of one length: 1 True, 0 False, -1 neither.
    seed : of the draw.

    Examples
    --------
    >>> answers = np.array([1, 0, -1, 1, 0, 1, 0, 1], dtype=np.int8)
    >>> drawn_chats([answers], seed=1).tolist()
    [0, 1, 3, 4, 5, 6, 7]
    >>> answers[drawn_chats([answers], seed=1, most=3)].tolist().count(1)
    2
    """
    table = np.stack(people)
    places = np.flatnonzero((table >= 0).any(axis=0))
    if len(places) <= most:
        return places
    random = np.random.default_rng(seed)
    places = random.permutation(places)
    rarest_last = np.argsort([-_rarer(row) for row in table], kind="stable")
    ordered = places[np.lexsort(table[rarest_last][:, places])]
    every = len(ordered) / most
    picked = np.floor((np.arange(most) + random.random()) * every).astype(np.int64)
    return np.sort(ordered[picked])


def _rarer(answers: Codes) -> int:
    """How many chats have the rarer answer."""
    return min(int((answers == 1).sum()), int((answers == 0).sum()))


def out_of_fold(
    labelled: Labelled, *, seed: int, beat: Callable[[], None] = lambda: None
) -> dict[str, OutOfFold]:
    """
    The bag of words' answers, by criterion key.

    Words and pairs of neighbouring words, weighed by TF-IDF, and a logistic regression with balanced classes,
    cross-validated in five folds, fewer where a class has fewer chats. All that is learned (which words
    count, their weights, the regression) is learned anew for each fold from the other folds alone.
    Near-duplicates stand in one fold together.

    Parameters
    ----------
    labelled : texts and answers.
    seed : of the folds; the same seed gives the same answers.
    beat : called before each criterion, to say that this goes on.

    Raises
    ------
    whatever `beat` raises.

    Examples
    --------
    >>> people = np.array([1, 0] * 20, dtype=np.int8)
    >>> texts = ["thank you kindly" if answer else "go away now" for answer in people]
    >>> found = out_of_fold(Labelled(texts, range(40), {"polite": people}), seed=1)["polite"]
    >>> found.folds, bool((found.answers == people).all())
    (5, True)
    """
    counts = _counts(labelled.texts) if labelled.texts else None
    alike = np.asarray(labelled.alike)
    found = {}
    for key, people in labelled.people.items():
        beat()
        found[key] = _criterion(counts, alike, people, seed=seed)
    return found


def _counts(texts: Sequence[str]) -> Any:
    """How often each word and pair of words stands in each text: sparse, shape (texts, columns)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(ngram_range=(1, 2), n_features=COLUMNS, norm=None, alternate_sign=False)
    counts = words.transform([text[:MOST_CHARACTERS] for text in texts])
    used = np.bincount(counts.indices, minlength=COLUMNS) >= MIN_CHATS_WITH_WORD
    return counts[:, np.flatnonzero(used)]


def _criterion(counts: Any, alike: NDArray[Any], people: Codes, *, seed: int) -> OutOfFold:
    answers = np.full(len(people), NONE, dtype=np.int8)
    places = np.flatnonzero(people >= 0)
    units, unit_of = np.unique(alike[places], return_inverse=True)
    sides = _sides(people[places], unit_of, len(units))
    few = min(int(sides.sum()), int((~sides).sum()))
    if few < FEWEST:
        return OutOfFold(answers, reason=_too_few(people[places]))
    folds = min(FOLDS, few)
    for held in _folds(sides, folds, seed=seed):
        tested = np.isin(unit_of, held)
        learn, ask = places[~tested], places[tested]
        answers[ask] = _answers(counts[learn], people[learn], counts[ask], seed=seed)
    return OutOfFold(answers, folds)


def _sides(people: Codes, unit_of: Places, units: int) -> NDArray[np.bool_]:
    """The answer that each group of near-duplicates stands for: the rarer one where its chats differ."""
    rarer = int((people == 1).sum() <= (people == 0).sum())
    has_rarer = np.zeros(units, dtype=bool)
    has_rarer[unit_of[people == rarer]] = True
    return has_rarer if rarer else ~has_rarer


def _too_few(people: Codes) -> str:
    true, false = int((people == 1).sum()), int((people == 0).sum())
    word, n = ("True", true) if true <= false else ("False", false)
    alike = " that are not near-duplicates" if n >= FEWEST else ""
    needed = f"learning needs {FEWEST} chats that people answered {word}{alike}"
    return f"{needed}; there {'is' if n == 1 else 'are'} {n}"


def _folds(sides: NDArray[np.bool_], folds: int, *, seed: int) -> list[Places]:
    """The units that each fold holds back."""
    from sklearn.model_selection import StratifiedKFold

    split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(sides, sides)
    return [held for _, held in split]


def _answers(learned: Any, people: Codes, asked: Any, *, seed: int) -> Codes:
    """What a model of these chats says of others."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression

    used = np.bincount(learned.indices, minlength=learned.shape[1]) >= MIN_CHATS_WITH_WORD
    columns = np.flatnonzero(used)
    if not columns.size:  # no word to go by: what people say most
        return np.full(asked.shape[0], 2 * people.sum() >= len(people), dtype=np.int8)
    weights = TfidfTransformer(sublinear_tf=True).fit(learned[:, columns])
    model = LogisticRegression(
        class_weight="balanced",
        solver="liblinear",
        dual=True,  # many words, few chats: six times as fast
        max_iter=1_000,
        random_state=seed,
    )
    model.fit(weights.transform(learned[:, columns]), people)
    answers: Codes = model.predict(weights.transform(asked[:, columns])).astype(np.int8)
    return answers
