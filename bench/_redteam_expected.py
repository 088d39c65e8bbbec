"""The right words on planted judges and their worlds: written down before anything is simulated.

Right and wrong are judged against the truth, which is the consensus of a perfect panel. A judge is bad where
its TPR or TNR is at most 0.65, the lower bound that a status demands, or 0.70 with 120 labels of that class:
between this and the demanded 0.80 chance decides. It is good from 0.92 on at the label plan's smallest
numbers, from 0.90 on with 400 chats, and from 0.85 on with 800.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from alignment.statistics.label_needs import Decision
from bench._redteam_judges import Judge, skilled
from bench._redteam_words import Subject
from bench._redteam_worlds import World, copies, disputing, raters, some_double


@dataclass(frozen=True, slots=True)
class Expected:
    """
    The right word on one subject.

    Parameters
    ----------
    words : the right ones.
    must : a right word has to come in at least 90% of the sets.
    never : words of which none may come in more than 5%, all together.
    """

    subject: Subject
    words: tuple[str, ...]
    must: bool = False
    never: tuple[str, ...] = ()


HONEST = skilled(0.90)


@dataclass(frozen=True, slots=True)
class Case:
    """
    A planted judge.

    Parameters
    ----------
    expected : the right words; those on label plan and consensus follow from the world if they are not named.
    why : the reason for them.
    against : the judge it is compared with, and whose champion it would replace.
    split : the chats that are reported; '' for all.
    """

    name: str
    world: World
    judge: Judge
    expected: tuple[Expected, ...]
    why: str
    against: Judge = HONEST
    split: str = ""

    @property
    def every(self) -> tuple[Expected, ...]:
        """The right words on this judge, and on the labels of its world."""
        named = {one.subject for one in self.expected}
        of_labels = LABELS.get(self.world, ENOUGH_AND_AGREED)
        return (*self.expected, *(one for one in of_labels if one.subject not in named))


def must(subject: Subject, *words: str, never: Iterable[str] = ()) -> Expected:
    """At least 90%."""
    return Expected(subject, words, must=True, never=tuple(never))


def never(subject: Subject, *wrong: str, right: str) -> Expected:
    """At most 5%."""
    return Expected(subject, (right,), never=wrong)


def shown(subject: Subject, word: str) -> Expected:
    """Without a limit: chance decides, or no figure can tell."""
    return Expected(subject, (word,))


GOOD_RATERS = raters(0.97, 0.97, 0.97)
USUAL = World("400 chats", GOOD_RATERS)
TWICE = World("800 chats", GOOD_RATERS, chats=800)
PLANNED = World("as planned for a status", GOOD_RATERS, chats=Decision.BADGE)
ALONE = World("as planned for one criterion's release", GOOD_RATERS, chats=Decision.SINGLE)
FAMILY = World("13 criteria, as planned for the gate", GOOD_RATERS, true=(0.7,) * 13, chats=Decision.GATE)
MIXED = World("6 criteria 90% True, 6 10%", GOOD_RATERS, true=(0.9,) * 6 + (0.1,) * 6)
TWELVE = World("12 criteria", GOOD_RATERS, true=(0.7,) * 12)
FEW_HARD = World("10 criteria, 30 chats", GOOD_RATERS, true=(0.5,) * 10, chats=30)
DIALOGUES = World("40 dialogues of 10 chats", GOOD_RATERS, dialogue=10)
FEW = World("60 chats", GOOD_RATERS, chats=60)
RARE = World("95% True, as planned", raters(0.975, 0.975, 0.975), true=(0.95,), chats=Decision.BADGE)
RARE_FEW = World("95% True, 400 chats", raters(0.975, 0.975, 0.975), true=(0.95,))
ALL_TRUE = World("nothing False, two raters", raters(0.975, 0.975), true=(1.0,))
QUARREL = World("raters right in 60%", raters(0.6, 0.6, 0.6))
GUESS = World("raters who guess", raters(0.5, 0.5, 0.5))
ONE_INVERTED = World("one rater of three inverted", raters(0.97, 0.97, 0.03))
OPPOSED = World("two raters who oppose each other", disputing(1.0))
HALF_DISPUTED = World("two raters, half disputed", disputing(0.5))
TENTH_DISPUTED = World("two raters, 10% disputed", disputing(0.1))
COPIED = World("two raters copy one of 0.75", copies(0.75, 3))
THREE_NAMES = World("one person, three names", copies(0.75, 3, slips=0.03))
ONE_PERSON = World("one rater of 0.75", raters(0.75))
ONE_EXPERT = World("one rater of 0.97", raters(0.97))
MAIN_RATER = World("one rater of 0.75, 5% double", some_double(0.75, (0.95, 0.95), 0.05))
MAIN_RATER_MORE = World("one rater of 0.75, 15% double", some_double(0.75, (0.95, 0.95), 0.15))

ENOUGH, LABEL_MORE = must(Subject.PLAN, "enough"), must(Subject.PLAN, "label more")
AGREED = must(Subject.CONSENSUS, "right", never=["wrong"])
# A majority that is wrong looks like one that is right.
ANY_ENOUGH = (ENOUGH, shown(Subject.CONSENSUS, "right"))
ENOUGH_AND_AGREED = (ENOUGH, AGREED)
LABELS: Mapping[World, tuple[Expected, Expected]] = {
    **dict.fromkeys((FEW, FEW_HARD, RARE_FEW, ALL_TRUE), (LABEL_MORE, AGREED)),
    **dict.fromkeys((QUARREL, GUESS, COPIED, THREE_NAMES), ANY_ENOUGH),
    **dict.fromkeys((ONE_PERSON, MAIN_RATER, MAIN_RATER_MORE), ANY_ENOUGH),
    OPPOSED: (LABEL_MORE, must(Subject.CONSENSUS, "unresolved", never=["right", "wrong"])),
    HALF_DISPUTED: (ENOUGH, must(Subject.CONSENSUS, "right", "unresolved", never=["wrong"])),
    TENTH_DISPUTED: (ENOUGH, must(Subject.CONSENSUS, "right", "unresolved", never=["wrong"])),
}

NOT_ALIGNED = (
    never(Subject.STATUS, "aligned", right="not_aligned"),
    never(Subject.CERTIFICATE, "certified", right="refused"),
)
ALIGNED = (must(Subject.STATUS, "aligned"), must(Subject.CERTIFICATE, "certified"))
ANY_STATUS = (shown(Subject.STATUS, "aligned"), shown(Subject.CERTIFICATE, "certified"))
TOO_FEW = (
    must(Subject.STATUS, "not_enough_labels", never=["aligned", "raters_disagree"]),
    must(Subject.CERTIFICATE, "refused", never=["certified"]),
)
DISAGREE = (
    must(Subject.STATUS, "raters_disagree", never=["aligned"]),
    must(Subject.CERTIFICATE, "refused", never=["certified"]),
)
UNDECIDED = (
    must(Subject.STATUS, "raters_disagree", "not_enough_labels", never=["aligned"]),
    must(Subject.CERTIFICATE, "refused", never=["certified"]),
)
NOT_BETTER = (never(Subject.LEAGUE, "better", right="worse"), never(Subject.GATE, "pass", right="fail"))
NO_CLAIM = (
    never(Subject.LEAGUE, "better", right="no difference"),
    never(Subject.GATE, "pass", right="inconclusive"),
)
# NB: of two equal judges each may be called better in 2.5% of the sets.
EQUAL = (
    never(Subject.LEAGUE, "better", right="no difference"),
    never(Subject.GATE, "fail", right="pass"),
)
NOT_WORSE = (never(Subject.LEAGUE, "worse", right="better"), never(Subject.GATE, "fail", right="pass"))
ANY_PAIR = (shown(Subject.LEAGUE, "no difference"), shown(Subject.GATE, "inconclusive"))
BAD = (*NOT_ALIGNED, *NOT_BETTER)
TOO_MANY_MISSING = (
    must(Subject.STATUS, "not_aligned", never=["aligned"]),
    must(Subject.CERTIFICATE, "refused", never=["certified"]),
)
INCOMPLETE = (*TOO_MANY_MISSING, *NO_CLAIM)


def caution(kind: str) -> Expected:
    """A caution or a reason of this kind."""
    return must(Subject.CAUTION, kind)
