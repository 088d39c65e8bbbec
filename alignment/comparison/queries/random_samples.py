"""Random samples from which a rate over all chats of a run can be estimated."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from alignment.comparison.queries.scope import Scope
from alignment.statistics.stratified_sampling import effective_size
from evaluation.models.runs import RunChat
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Consensus, LabelingJob

PART = ("topic", "since", "until")  # limits of a sample's part of the run, stored with the sample


@dataclass(frozen=True, slots=True)
class RandomSample:
    """A sampled chat set: ids of the set and its run, the split, and keys of its labelled criteria."""

    pk: int
    run: int
    split: str
    criteria: tuple[str, ...]


def equal_chance_samples(scope: Scope) -> list[RandomSample]:
    """Samples in which every chat of the frame had a positive probability, oldest first; two queries."""
    rubric = scope.chat_set.rubric_id if scope.chat_set else None
    sets = ChatSet.objects.filter(kind=ChatSet.Kind.SAMPLE, rubric=rubric, sampling__run__isnull=False)
    fair = {row.pk: row.sampling for row in sets.order_by("pk") if row.sampling and _is_fair(row.sampling)}
    jobs = LabelingJob.objects.filter(chat_set__in=list(fair))
    by_jobs = set(jobs.order_by().values_list("chat_set", "criteria__key")) if fair else set()
    return [
        RandomSample(
            pk,
            sampling["run"],
            sampling["run_split"],
            tuple(sorted({*sampling["criteria"], *(key for of, key in by_jobs if of == pk)})),
        )
        for pk, sampling in fair.items()
    ]


def _is_fair(sampling: Mapping[str, Any]) -> bool:
    of_part = sampling["topics"] or any(sampling.get(f"run_{name}") for name in PART)
    return not of_part and all(row["probability"] for row in sampling["strata"])


def random_sample_sizes(scope: Scope, samples: Sequence[RandomSample]) -> dict[int, int]:
    """Effective number of randomly sampled, labelled chats, by criterion id; at most four queries.

    The sum of the samples' effective sizes (Kish 1965); a chat of two samples counts in the first one.
    """
    samples = _over_all_of(scope, samples)
    if not samples:
        return {}
    sets = [sample.pk for sample in samples]
    members = ChatSetMember.objects.filter(chat_set__in=sets, chat__in=scope.chat_ids)
    rows = Consensus.objects.filter(
        chat__in=members.values("chat"), criterion__in=scope.criteria, state__in=Consensus.ANSWERED
    )
    answered = set(rows.values_list("criterion__key", "chat_id").order_by())
    chances: dict[int, dict[int, float]] = {sample.pk: {} for sample in samples}
    for of, chat, chance in members.order_by().values_list("chat_set", "chat", "inclusion_probability"):
        chances[of][chat] = chance or 1.0  # every chat of a sampled set has one
    return {row.pk: _effective_size(row.key, samples, chances, answered) for row in scope.criteria}


def _over_all_of(scope: Scope, samples: Sequence[RandomSample]) -> list[RandomSample]:
    """Samples whose run and split hold all chats of the scope."""
    samples = [sample for sample in samples if sample.split in ("", scope.split)]
    runs = {sample.run for sample in samples}
    if not runs:
        return []
    covered = RunChat.objects.filter(run__in=runs, chat__in=scope.chat_ids).order_by()
    counts = dict(covered.values_list("run").annotate(n=Count("pk")))
    chats = scope.members.count()
    return [sample for sample in samples if counts.get(sample.run) == chats]


def _effective_size(
    key: str,
    samples: Iterable[RandomSample],
    chances: dict[int, dict[int, float]],
    answered: set[tuple[str, int]],
) -> int:
    counted: set[int] = set()
    size = 0.0
    for sample in samples:
        if key in sample.criteria:
            own = {chat for chat in chances[sample.pk] if (key, chat) in answered} - counted
            size += effective_size(chances[sample.pk][chat] for chat in own)
            counted |= own
    return int(size + 1e-9)
