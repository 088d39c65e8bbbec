"""Planted judges: their verdicts follow from the truth, and from how they fail."""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from alignment.comparison.core.codes import Codes, HumanCode, JudgeCode
from bench._redteam_worlds import Chats, Floats, Generator, flipped

# From the chats and the champion's verdicts to verdicts, both JudgeCode of shape (criteria, chats).
Judge = Callable[[Chats, Codes, Generator], Codes]
# Of the answers of a noisy judge, the share that it tosses a coin for whenever it is asked.
TOSSED = 0.2
# Chances to fix and to break where a champion is right on 90%: each changes 4% of the chats.
EQUAL = (0.4, 0.04 / 0.9)


def skilled(tpr: float, tnr: float | None = None) -> Judge:
    """Errs by chance, independently of the chat; without TNR it is equal to TPR."""

    def verdicts(chats: Chats, _: Codes, draw: Generator) -> Codes:
        wrong = np.where(chats.truth == HumanCode.TRUE, 1 - tpr, 1 - (tpr if tnr is None else tnr))
        return flipped(chats.truth, wrong, draw)

    return verdicts


def by_chat(chance: Callable[[Chats], Floats]) -> Judge:
    """Is right with a chance that depends on the chat, shape (chats,)."""
    return lambda chats, _, draw: flipped(chats.truth, 1 - chance(chats), draw)


def on_one_topic(skill: float) -> Judge:
    """Is right on one topic and guesses on the others."""
    return by_chat(lambda chats: np.where(chats.topic == 0, skill, 0.5))


def on_train(skill: float, elsewhere: float) -> Judge:
    """Has learnt the chats that its examples come from."""
    return by_chat(lambda chats: np.where(chats.split == "train", skill, elsewhere))


def noisy() -> Judge:
    """Tosses a coin for the hardest chats, and again whenever it is asked."""
    return by_chat(lambda chats: np.where(chats.hard > 1 - TOSSED, 0.5, 1.0))


def right_where_raters_agree(disputed: float) -> Judge:
    """Is right on the easy chats and guesses on those that raters dispute."""
    return by_chat(lambda chats: np.where(chats.hard >= 1 - disputed, 0.5, 1.0))


def clustered(skill: float, alike: float) -> Judge:
    """Errs on the same chats on every criterion: a normal hardness of which `alike` belongs to the chat."""

    def verdicts(chats: Chats, _: Codes, draw: Generator) -> Codes:
        whole, own = draw.standard_normal(len(chats)), draw.standard_normal(chats.truth.shape)
        wrong = np.sqrt(alike) * whole + np.sqrt(1 - alike) * own > ndtri(skill)
        return np.where(wrong, 1 - chats.truth, chats.truth).astype(np.int8)

    return verdicts


def by_dialogue(tpr: float, tnr: float) -> Judge:
    """Answers all chats of one dialogue right, or all wrong."""

    def verdicts(chats: Chats, _: Codes, draw: Generator) -> Codes:
        chance = draw.random((len(chats.truth), int(chats.dialogue.max()) + 1))[:, chats.dialogue]
        wrong = chance >= np.where(chats.truth == HumanCode.TRUE, tpr, tnr)
        return np.where(wrong, 1 - chats.truth, chats.truth).astype(np.int8)

    return verdicts


def follows_injections(skill: float) -> Judge:
    """Answers True where the chat's text tells it to."""
    honest = skilled(skill)
    return lambda chats, old, draw: np.where(chats.injected, JudgeCode.TRUE, honest(chats, old, draw)).astype(
        np.int8
    )


def paraphrases_rater(slips: float) -> Judge:
    """Repeats the first rater, whatever is true."""
    return lambda chats, _, draw: flipped(chats.labels[0], slips, draw)


def paraphrases_consensus(slips: float) -> Judge:
    """Repeats the majority of the raters, and guesses where there is none."""

    def verdicts(chats: Chats, _: Codes, draw: Generator) -> Codes:
        coin = flipped(chats.truth, 0.5, draw)
        return flipped(np.where(chats.human <= HumanCode.FALSE, chats.human, coin), slips, draw)

    return verdicts


# ---------- judges that do not read ----------


def always_true(chats: Chats, _: Codes, __: Generator) -> Codes:
    """One answer to everything."""
    return np.full_like(chats.truth, JudgeCode.TRUE)


def constant(chats: Chats, _: Codes, __: Generator) -> Codes:
    """Each criterion's frequent answer."""
    common = np.where(chats.share >= 0.5, JudgeCode.TRUE, JudgeCode.FALSE)
    return np.broadcast_to(common, chats.truth.shape).astype(np.int8)


def at_base_rate(chats: Chats, _: Codes, draw: Generator) -> Codes:
    """Guesses True as often as it is true."""
    return np.where(draw.random(chats.truth.shape) < chats.share, JudgeCode.TRUE, JudgeCode.FALSE).astype(
        np.int8
    )


# ---------- judges without an answer on some chats ----------


def without_errors(judge: Judge, code: JudgeCode, *, most: float = 1.0, criteria: int | None = None) -> Judge:
    """Has no verdict where it would have been wrong: on `most` of each answer, on the first `criteria`."""

    def verdicts(chats: Chats, old: Codes, draw: Generator) -> Codes:
        given = judge(chats, old, draw)
        gone = given != chats.truth
        for answer in (HumanCode.TRUE, HumanCode.FALSE):
            asked = chats.truth == answer
            of_class = gone & asked
            gone &= ~of_class | (of_class.cumsum(axis=1) <= most * asked.sum(axis=1, keepdims=True))
        gone[criteria:] &= criteria is None
        return np.where(gone, code, given).astype(np.int8)

    return verdicts


def missing(judge: Judge, share: float, code: JudgeCode, *, answer: HumanCode | None = None) -> Judge:
    """Has no verdict on a share of the chats chosen at random, of all or of those with this true answer."""

    def verdicts(chats: Chats, old: Codes, draw: Generator) -> Codes:
        gone = draw.random(chats.truth.shape) < share
        if answer is not None:
            gone &= chats.truth == answer
        return np.where(gone, code, judge(chats, old, draw)).astype(np.int8)

    return verdicts


# ---------- revisions of a champion ----------


def revised(*, true: tuple[float, float], false: tuple[float, float], first_alone: bool = False) -> Judge:
    """
    The champion's verdicts, some of them changed.

    Parameters
    ----------
    true, false : chance to fix a wrong verdict and to break a right one, by the true answer.
    first_alone : of the first criterion alone; on the others as much is fixed as broken (`EQUAL`).
    """

    def verdicts(chats: Chats, champion: Codes, draw: Generator) -> Codes:
        is_true = chats.truth == HumanCode.TRUE
        fix, break_ = (np.where(is_true, true[n], false[n]) for n in range(2))
        if first_alone:
            fix[1:], break_[1:] = EQUAL
        return flipped(champion, np.where(champion == chats.truth, break_, fix), draw)

    return verdicts
