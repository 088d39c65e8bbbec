"""Chats of a judged sample for human labels: a random audit, and more of those with a verdict of False."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.stats import hypergeom

from labeling.sampling.core.chat_samples import ChatId, key_prefix, sampling_key


@dataclass(frozen=True, slots=True)
class JudgedChat:
    """A chat of the judged sample; `suspect`: the judge gave a verdict of False on a watched criterion."""

    chat: ChatId
    suspect: bool
    probability: float  # to be in the judged sample, in (0, 1]


class LabelSource(StrEnum):
    """Part of the label sample that a chat is in."""

    AUDIT = "audit"
    SUSPECT = "suspect"


@dataclass(frozen=True, slots=True)
class LabelledChat:
    """A chat for the raters.

    Parameters
    ----------
    chat, suspect : as judged.
    source : the audit, or the oversample if the audit missed it.
    probability : of the frame's chat to be labelled: judged sample and label sample, in (0, 1].
    audit_probability : likewise, to be in the audit.
    """

    chat: ChatId
    suspect: bool
    source: LabelSource
    probability: float
    audit_probability: float


@dataclass(frozen=True, slots=True)
class LabelProbabilities:
    """Probabilities of a judged chat to be labelled, in [0, 1].

    audit : to be in the audit. suspect, other : to be labelled, by whether the chat is suspect.
    """

    audit: float
    suspect: float
    other: float

    def of(self, chat: JudgedChat) -> float:
        """Inclusion probability of a chat of the frame for the labelled sample."""
        return chat.probability * (self.suspect if chat.suspect else self.other)


@dataclass(frozen=True, slots=True)
class LabelSample:
    """The chats for the raters in random order, and the probabilities of every judged chat."""

    chats: tuple[LabelledChat, ...]
    probabilities: LabelProbabilities


def audit_size(judged: int, *, share: float) -> int:
    """Chats in the audit: the share of those judged, rounded up; `share` in [0, 1].

    >>> audit_size(500, share=0.05), audit_size(30, share=0.05), audit_size(30, share=0)
    (25, 2, 0)
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the share of the audit must be between 0 and 1, not {share}")
    return math.ceil(judged * share - 1e-9)


def label_probabilities(*, judged: int, suspects: int, audit: int, oversample: int) -> LabelProbabilities:
    """Probabilities to be labelled: `audit` of all judged at random, then more of the suspects it missed.

    Parameters
    ----------
    judged, suspects : chats in the judged sample, and those with a verdict of False.
    audit : chats in the audit, at most `judged`.
    oversample : suspect chats to add; all the audit missed if they are fewer.

    Returns
    -------
    LabelProbabilities : of a suspect E[min(A + oversample, suspects)] / suspects, where A, the suspects in
        the audit, is hypergeometric. It is exact over audit and oversample.

    Raises
    ------
    ValueError : a negative number, or more audited or suspect chats than judged.

    Notes
    -----
    Samples in two phases: Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling, chapter 9.

    Examples
    --------
    >>> label_probabilities(judged=100, suspects=20, audit=10, oversample=5)
    LabelProbabilities(audit=0.1, suspect=0.35, other=0.1)
    """
    if min(judged, suspects, audit, oversample) < 0 or max(suspects, audit) > judged:
        raise ValueError("needs numbers of 0 or more, and at most all judged chats audited or suspect")
    if not judged:
        return LabelProbabilities(0.0, 0.0, 0.0)
    share = audit / judged
    if not suspects:
        return LabelProbabilities(share, 0.0, share)
    if oversample + min(audit, suspects) <= suspects:
        return LabelProbabilities(share, share + oversample / suspects, share)
    hits = np.arange(min(audit, suspects) + 1)
    weights = hypergeom.pmf(hits, judged, suspects, audit)
    labelled = float((weights * np.minimum(hits + oversample, suspects)).sum())
    return LabelProbabilities(share, min(1.0, labelled / suspects), share)


def sample_labels(judged: Iterable[JudgedChat], *, audit: int, oversample: int, seed: int) -> LabelSample:
    """Sample chats for the raters: a random audit of the judged sample, beside more suspect chats.

    Parameters
    ----------
    judged : the judged sample, in any order.
    audit : chats to audit, all if they are fewer. They do not depend on verdicts.
    oversample : suspect chats to add to those in the audit.
    seed : the same seed, ids and verdicts give the same chats.

    Returns
    -------
    LabelSample : in an order that does not disclose source or verdict.

    Examples
    --------
    >>> sample = [JudgedChat(number, suspect=number < 5, probability=0.1) for number in range(20)]
    >>> found = sample_labels(sample, audit=4, oversample=2, seed=1)
    >>> len(found.chats), sum(one.source is LabelSource.AUDIT for one in found.chats)
    (6, 4)
    >>> round(found.chats[0].audit_probability, 3)
    0.02
    """
    chats = list(judged)
    suspects = sum(chat.suspect for chat in chats)
    audit = min(audit, len(chats))
    probabilities = label_probabilities(
        judged=len(chats), suspects=suspects, audit=audit, oversample=oversample
    )
    audited = _smallest(chats, audit, prefix=key_prefix(seed, "audit"))
    taken = {chat.chat for chat in audited}
    missed = [chat for chat in chats if chat.suspect and chat.chat not in taken]
    added = _smallest(missed, oversample, prefix=key_prefix(seed, "suspect"))
    labelled = [(LabelSource.AUDIT, chat) for chat in audited]
    labelled += [(LabelSource.SUSPECT, chat) for chat in added]
    place = key_prefix(seed, "place")
    labelled.sort(key=lambda one: sampling_key(one[1].chat, prefix=place))
    return LabelSample(
        tuple(
            LabelledChat(
                chat.chat,
                chat.suspect,
                source,
                probabilities.of(chat),
                chat.probability * probabilities.audit,
            )
            for source, chat in labelled
        ),
        probabilities,
    )


def _smallest(chats: Iterable[JudgedChat], n: int, *, prefix: str) -> list[JudgedChat]:
    return sorted(chats, key=lambda chat: sampling_key(chat.chat, prefix=prefix))[:n]
