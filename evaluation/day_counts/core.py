"""Counts of verdicts and sums of scores by day and topic, from the verdicts of some chats."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

# Passing answers are kept as whole numbers of this part: sums of fractions would depend on their order.
SCALE = 10_000
SCORE, SCORE_ALL, DIMENSION, CRITERION = "score", "score_all", "dimension:", "criterion:"
NO_TENTH = -1


class Place(NamedTuple):
    """The key that a chat is counted under; `day` in the site's time zone."""

    day: date
    topic: int
    version: str = ""
    experiment: str = ""
    variant: str = ""


@dataclass(frozen=True, slots=True)
class CountedCriterion:
    """Facts of a criterion that its counts depend on; `passes_when` as the judge's version has it."""

    dimension: str
    passes_when: bool = True
    subjective: bool = False
    critical: bool = False


class Answer(NamedTuple):
    """A stored verdict; without `read` it could not be read, was refused or failed."""

    criterion: int
    read: bool
    value: bool | None


CountKey = tuple[Place, int]
ScoreKey = tuple[Place, str, int]


@dataclass
class Tally:
    """Numbers to add to the stored ones, in the order of the models' fields.

    `counts` : chats, passed, failed, not applicable. `scores` : chats, and the sums of a, y, a², y² and a·y.
    """

    criteria: Mapping[int, CountedCriterion]
    counts: dict[CountKey, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * 4))
    scores: dict[ScoreKey, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * 6))

    def add(self, place: Place, answers: Iterable[Answer], *, sign: int = 1) -> None:
        """Add one chat's verdicts, or with `sign` -1 take them away; nothing without any.

        >>> tally = Tally({1: CountedCriterion("tone"), 2: CountedCriterion("tone", passes_when=False)})
        >>> tally.add(Place(date(2026, 11, 2), 5), [Answer(1, True, True), Answer(2, True, True)])
        >>> {criterion: numbers for (_, criterion), numbers in tally.counts.items()}
        {1: [1, 1, 0, 0], 2: [1, 0, 1, 0]}
        >>> {key[1:]: numbers[:3] for key, numbers in tally.scores.items()}
        {('dimension:tone', -1): [1, 2, 10000], ('score', 5): [1, 1, 5000], ('score_all', 5): [1, 1, 5000]}
        """
        results = [(one.criterion, self._result(one)) for one in answers if one.criterion in self.criteria]
        for criterion, result in results:
            numbers = self.counts[place, criterion]
            numbers[0] += sign
            if result is not None:
                numbers[result] += sign
        for (part, tenth), (a, y) in self._parts(results).items():
            _add(self.scores[place, part, tenth], (1, a, y, a * a, y * y, a * y), sign)

    def parts(self, answers: Iterable[Answer]) -> dict[str, tuple[int, int]]:
        """Return a and y of one chat by part: each criterion as `criterion:ID`, dimensions and scores.

        >>> Tally({1: CountedCriterion("tone")}).parts([Answer(1, True, True)])["criterion:1"]
        (1, 10000)
        """
        results = [(one.criterion, self._result(one)) for one in answers if one.criterion in self.criteria]
        single = {
            f"{CRITERION}{criterion}": (int(result in (1, 2)), SCALE * (result == 1))
            for criterion, result in results
        }
        return single | {part: numbers for (part, _), numbers in self._parts(results).items()}

    def members(self, criteria: Iterable[int]) -> dict[str, set[int]]:
        """Return which of these criteria each part is made of."""
        found: dict[str, set[int]] = defaultdict(set)
        for criterion in criteria:
            about = self.criteria[criterion]
            found[f"{CRITERION}{criterion}"].add(criterion)
            found[DIMENSION + about.dimension].add(criterion)
            found[SCORE_ALL].add(criterion)
            if not about.subjective:
                found[SCORE].add(criterion)
        return dict(found)

    def without_zeros(self) -> "Tally":
        """Return it without the keys whose numbers are all 0."""
        counts = {key: numbers for key, numbers in self.counts.items() if any(numbers)}
        scores = {key: numbers for key, numbers in self.scores.items() if any(numbers)}
        return Tally(self.criteria, counts, scores)

    def _result(self, answer: Answer) -> int | None:
        """Place of the verdict in `counts`: 1 passed, 2 failed, 3 not applicable; None without a verdict."""
        if not answer.read:
            return None
        if answer.value is None:
            return 3
        return 1 if answer.value == self.criteria[answer.criterion].passes_when else 2

    def _parts(self, results: list[tuple[int, int | None]]) -> dict[tuple[str, int], tuple[int, int]]:
        """a and y of each dimension, and of the session scores, by part and tenth."""
        found: dict[tuple[str, int], tuple[int, int]] = {}
        for criterion, result in results:
            key = (DIMENSION + self.criteria[criterion].dimension, NO_TENTH)
            a, y = found.get(key, (0, 0))
            found[key] = (a + (result in (1, 2)), y + SCALE * (result == 1))
        if results:
            objective = [one for one in results if not self.criteria[one[0]].subjective]
            for part, counted in ((SCORE, objective), (SCORE_ALL, results)):
                score = self._score(counted)
                tenth = NO_TENTH if score is None else score * 10 // SCALE
                found[part, tenth] = (0, 0) if score is None else (1, score)
        return found

    def _score(self, results: list[tuple[int, int | None]]) -> int | None:
        """Share of applicable criteria that pass; 0 if a critical one fails; None without any."""
        passed = sum(result == 1 for _, result in results)
        failed = [criterion for criterion, result in results if result == 2]
        if not passed + len(failed):
            return None
        if any(self.criteria[criterion].critical for criterion in failed):
            return 0
        return passed * SCALE // (passed + len(failed))


def _add(numbers: list[int], more: Iterable[int], sign: int) -> None:
    for at, number in enumerate(more):
        numbers[at] += sign * number
