"""A bag-of-words classifier that is never tested on a chat it was trained on.

NB: scikit-learn is imported where it is used: its import takes longer than opening a stored report.
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
# Characters of a chat that are read. Longer chats are rare, but a few of them could exhaust the memory.
MOST_CHARACTERS = 20_000
# Words and pairs of words in fewer chats are ignored.
MIN_CHATS_WITH_WORD = 2
# Words are hashed into this many columns, so that the vocabulary is not learned from test chats.
COLUMNS = 2**20
NONE = -1


@dataclass(frozen=True)
class Labelled:
    """Labelled chats.

    Parameters
    ----------
    texts : each chat as one text.
    alike : number of each chat's group of near-duplicates.
    human : human answers by criterion key, shape (chats,): 1 True, 0 False, -1 neither.
    """

    texts: Sequence[str]
    alike: Sequence[int]
    human: dict[str, Codes]


@dataclass(frozen=True)
class OutOfFold:
    """Predictions for a criterion, each from a model that was not trained on the chat.

    Parameters
    ----------
    answers : shape (chats,): 1 True, 0 False, -1 none.
    folds : number of folds; 0, with a `reason`, without predictions.
    """

    answers: Codes
    folds: int = 0
    reason: str = ""


def sampled_chats(human: Sequence[Codes], *, seed: int, most: int = MOST_CHATS) -> Places:
    """Select the chats to learn from: all labelled ones, or a sample of `most`.

    Systematic sample of the chats sorted by their answers, rarest first, so that answers keep their shares
    on each criterion.

    Parameters
    ----------
    human : one array of shape (chats,) per criterion: 1 True, 0 False, -1 neither.
    seed : of the sample.
    most : size of the sample.

    Returns
    -------
    array of int : sorted positions of the selected chats.

    Notes
    -----
    Systematic sampling: Cochran (1977), Sampling Techniques, chapter 8.

    Examples
    --------
    >>> answers = np.array([1, 0, -1, 1, 0, 1, 0, 1], dtype=np.int8)
    >>> sampled_chats([answers], seed=1).tolist()
    [0, 1, 3, 4, 5, 6, 7]
    >>> answers[sampled_chats([answers], seed=1, most=3)].tolist().count(1)
    2
    """
    table = np.stack(human)
    places = np.flatnonzero((table >= 0).any(axis=0))
    if len(places) <= most:
        return places
    random = np.random.default_rng(seed)
    places = random.permutation(places)
    rarest_last = np.argsort([-_rarer(row) for row in table], kind="stable")
    ordered = places[np.lexsort(table[rarest_last][:, places])]
    step = len(ordered) / most
    selected = np.floor((np.arange(most) + random.random()) * step).astype(np.int64)
    return np.sort(ordered[selected])


def _rarer(answers: Codes) -> int:
    """Number of chats with the rarer answer."""
    return min(int((answers == 1).sum()), int((answers == 0).sum()))


def out_of_fold(
    labelled: Labelled, *, seed: int, beat: Callable[[], None] = lambda: None
) -> dict[str, OutOfFold]:
    """Cross-validated predictions of the bag of words, by criterion key.

    TF-IDF of words and pairs of neighbouring words, and logistic regression with balanced classes, in five
    folds, or fewer if a class has fewer chats. Vocabulary, weights and regression are fitted for each fold on
    the other folds only. Near-duplicates are in the same fold.

    Parameters
    ----------
    labelled : texts and human answers.
    seed : of the folds; the same seed gives the same predictions.
    beat : called before each criterion, as a sign of life.

    Returns
    -------
    dict of OutOfFold : without predictions, with a reason, for fewer than two chats of a class.

    Raises
    ------
    Any exception of `beat`.

    Examples
    --------
    >>> human = np.array([1, 0] * 20, dtype=np.int8)
    >>> texts = ["thank you kindly" if answer else "go away now" for answer in human]
    >>> result = out_of_fold(Labelled(texts, range(40), {"polite": human}), seed=1)["polite"]
    >>> result.folds, bool((result.answers == human).all())
    (5, True)
    """
    counts = _counts(labelled.texts) if labelled.texts else None
    alike = np.asarray(labelled.alike)
    results = {}
    for key, human in labelled.human.items():
        beat()
        results[key] = _criterion(counts, alike, human, seed=seed)
    return results


def _counts(texts: Sequence[str]) -> Any:
    """Counts of words and pairs of words by text: sparse, shape (texts, columns)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(ngram_range=(1, 2), n_features=COLUMNS, norm=None, alternate_sign=False)
    counts = words.transform([text[:MOST_CHARACTERS] for text in texts])
    used = np.bincount(counts.indices, minlength=COLUMNS) >= MIN_CHATS_WITH_WORD
    return counts[:, np.flatnonzero(used)]


def _criterion(counts: Any, alike: NDArray[Any], human: Codes, *, seed: int) -> OutOfFold:
    answers = np.full(len(human), NONE, dtype=np.int8)
    places = np.flatnonzero(human >= 0)
    units, unit_of = np.unique(alike[places], return_inverse=True)
    sides = _sides(human[places], unit_of, len(units))
    few = min(int(sides.sum()), int((~sides).sum()))
    if few < FEWEST:
        return OutOfFold(answers, reason=_too_few(human[places]))
    folds = min(FOLDS, few)
    for test_units in _folds(sides, folds, seed=seed):
        in_test = np.isin(unit_of, test_units)
        train, test = places[~in_test], places[in_test]
        answers[test] = _answers(counts[train], human[train], counts[test], seed=seed)
    return OutOfFold(answers, folds)


def _sides(human: Codes, unit_of: Places, units: int) -> NDArray[np.bool_]:
    """The answer of each group of near-duplicates: the rarer one if its chats differ."""
    rarer = int((human == 1).sum() <= (human == 0).sum())
    has_rarer = np.zeros(units, dtype=bool)
    has_rarer[unit_of[human == rarer]] = True
    return has_rarer if rarer else ~has_rarer


def _too_few(human: Codes) -> str:
    true, false = int((human == 1).sum()), int((human == 0).sum())
    word, n = ("True", true) if true <= false else ("False", false)
    alike = " that are not near-duplicates" if n >= FEWEST else ""
    return f"needs {FEWEST} chats with answer {word}{alike}, has {n}"


def _folds(sides: NDArray[np.bool_], folds: int, *, seed: int) -> list[Places]:
    """Test units of each fold."""
    from sklearn.model_selection import StratifiedKFold

    split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(sides, sides)
    return [test_units for _, test_units in split]


def _answers(train: Any, human: Codes, test: Any, *, seed: int) -> Codes:
    """Predictions for test chats of a model fitted on train chats; counts of shape (chats, columns)."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression

    used = np.bincount(train.indices, minlength=train.shape[1]) >= MIN_CHATS_WITH_WORD
    columns = np.flatnonzero(used)
    if not columns.size:  # no common word: predict the majority
        return np.full(test.shape[0], 2 * human.sum() >= len(human), dtype=np.int8)
    weights = TfidfTransformer(sublinear_tf=True).fit(train[:, columns])
    model = LogisticRegression(
        class_weight="balanced",
        solver="liblinear",
        dual=True,  # many words, few chats: six times as fast
        max_iter=1_000,
        random_state=seed,
    )
    model.fit(weights.transform(train[:, columns]), human)
    answers: Codes = model.predict(weights.transform(test[:, columns])).astype(np.int8)
    return answers
