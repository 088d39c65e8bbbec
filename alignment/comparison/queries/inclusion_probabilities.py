"""Inclusion probabilities of a report's chats in samples for labelling, from the samples' strata."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count, QuerySet
from numpy.typing import NDArray

from alignment.comparison.queries.scope import Scope
from evaluation.models.runs import RunChat, Verdict
from labeling.chats.core.allocation import AllocationRule
from labeling.models.chats import ChatSet
from labeling.models.labels import Label

# A sample counts as random if at most MAX_UNEVEN of the probabilities are off the mean by more than UNEVEN.
UNEVEN, MAX_UNEVEN = 0.25, 0.05

Sampling = Mapping[str, Any]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Samples labelled on one criterion, by chat of the scope.

    Parameters
    ----------
    probability : shape (chats,), probability to be in one of the samples; 0 for none.
    sampled : shape (chats,), whether the chat was labelled for a sample.
    unequal : a sample over-represents a verdict or a topic.
    whole : one sample only, taken from all chats with about equal probabilities.
    """

    probability: Floats
    sampled: Flags
    unequal: bool
    whole: bool


def inclusion_probabilities(
    scope: Scope, *, chats: NDArray[np.int64], labels: QuerySet[Label]
) -> dict[int, Inclusion]:
    """By criterion id, for criteria labelled on a sample; at most six queries, one without a sample.

    Parameters
    ----------
    chats : ids of the scope's chats, in its order.
    labels : counted labels.

    Notes
    -----
    Horvitz & Thompson (1952), JASA 47:663; docs/understand/statistics.md.
    """
    samples = {pk: sampling for pk, sampling in _samples() if sampling}
    used = _sampled_labels(labels, samples)
    if not used:
        return {}
    strata = _Strata.of(scope, chats, {pk: samples[pk] for one in used.values() for pk in one})
    return {criterion: strata.inclusion(by_sample) for criterion, by_sample in used.items()}


def sampled_by_verdict(labels: QuerySet[Label]) -> int:
    """Number of chats labelled for a sample with unequal probabilities; at most two queries."""
    used = _sampled_labels(
        labels, {pk: sampling for pk, sampling in _samples() if sampling and _unequal(sampling)}
    )
    return len({chat for by_sample in used.values() for chats in by_sample.values() for chat in chats})


def unequal_samples() -> list[int]:
    """Ids of sampled chat sets that over-represent a verdict or a topic; one query."""
    return [pk for pk, sampling in _samples() if sampling and _unequal(sampling)]


def _sampled_labels(
    labels: QuerySet[Label], samples: Mapping[int, Sampling]
) -> dict[int, dict[int, set[int]]]:
    """Chats labelled for a sample, by criterion id and sample id.

    A label belongs to a sample that is for its criterion, or that has a job which asked for the label.
    """
    used: dict[int, dict[int, set[int]]] = {}
    if not samples:
        return used
    member = "chat__memberships__chat_set"
    rows = labels.filter(**{f"{member}__in": list(samples)}).order_by()
    columns = ("criterion", "chat", member, "criterion__key", "assignment__job__chat_set")
    for criterion, chat, sample, key, job_set in rows.values_list(*columns):
        if job_set == sample or key in samples[sample]["criteria"]:
            used.setdefault(criterion, {}).setdefault(sample, set()).add(chat)
    return used


def _samples() -> QuerySet[ChatSet, tuple[int, Any]]:
    sets = ChatSet.objects.filter(kind=ChatSet.Kind.SAMPLE, sampling__run__isnull=False)
    return sets.order_by("pk").values_list("pk", "sampling")


def _unequal(sampling: Sampling) -> bool:
    if sampling["oversampled"] or sampling["minimum"]:
        return True
    return bool(sampling["rule"] != AllocationRule.PROPORTIONAL)


@dataclass(frozen=True, slots=True)
class _Strata:
    """Strata of the chats of a scope in some samples; mappings by sample id.

    `covered` and `suspect` are chat ids: in the sample's run and split, and with a verdict of False there.
    `frames` is the number of chats in the run and split.
    """

    chats: NDArray[np.int64]
    topics: list[str]
    samples: Mapping[int, Sampling]
    covered: Mapping[int, Collection[int]]
    suspect: Mapping[int, Collection[int]]
    frames: Mapping[int, int]

    @classmethod
    def of(cls, scope: Scope, chats: NDArray[np.int64], samples: Mapping[int, Sampling]) -> "_Strata":
        """Load them; four queries."""
        runs = {one["run"] for one in samples.values()}
        keys = {key for one in samples.values() for key in one["criteria"]}
        rows = RunChat.objects.filter(run__in=runs, chat__in=scope.chat_ids).order_by()
        places = list(rows.values_list("run", "split", "chat"))
        false = Verdict.objects.filter(run__in=runs, criterion__key__in=keys, value=False).order_by()
        suspect = list(false.values_list("run", "criterion__key", "chat"))
        sizes = RunChat.objects.filter(run__in=runs).order_by().values_list("run", "split")
        counts = list(sizes.annotate(n=Count("pk")))
        return cls(
            chats,
            list(scope.members.values_list("chat__topic__key", flat=True)),
            samples,
            {
                pk: {chat for run, split, chat in places if _is_of(one, run, split)}
                for pk, one in samples.items()
            },
            {
                pk: {chat for run, key, chat in suspect if run == one["run"] and key in one["criteria"]}
                for pk, one in samples.items()
            },
            {
                pk: sum(n for run, split, n in counts if _is_of(one, run, split))
                for pk, one in samples.items()
            },
        )

    def inclusion(self, by_sample: Mapping[int, Collection[int]]) -> Inclusion:
        """Inclusion in the samples of one criterion, from the chats labelled for each sample."""
        probability = 1 - np.prod([1 - self._probability(pk) for pk in by_sample], axis=0)
        sampled = np.isin(self.chats, list({chat for chats in by_sample.values() for chat in chats}))
        unequal = any(_unequal(self.samples[pk]) for pk in by_sample)
        whole = len(by_sample) == 1 and not unequal and all(self._took_all(pk) for pk in by_sample)
        return Inclusion(probability, sampled, unequal, whole and _even(probability))

    def _probability(self, sample: int) -> Floats:
        """Inclusion probability of each chat in this sample, shape (chats,)."""
        sampling, covered, suspect = self.samples[sample], self.covered[sample], self.suspect[sample]
        known = {(row["judge_false"], row["topic"]): row["probability"] for row in sampling["strata"]}
        return np.array(
            [
                known.get((chat in suspect, topic), 0.0) if chat in covered else 0.0
                for chat, topic in zip(self.chats.tolist(), self.topics, strict=True)
            ]
        )

    def _took_all(self, sample: int) -> bool:
        """Whether the sampling frame is the whole run, without excluding labelled or duplicate chats."""
        frame: int = sum(row["size"] for row in self.samples[sample]["strata"])
        return frame == self.frames[sample]


def _is_of(sampling: Sampling, run: int, split: str) -> bool:
    return bool(run == sampling["run"] and sampling["run_split"] in ("", split))


def _even(probability: Floats) -> bool:
    mean = probability.mean() if probability.size else 0.0
    off = np.abs(probability - mean) > UNEVEN * mean
    return bool(mean > 0 and off.mean() <= MAX_UNEVEN)
