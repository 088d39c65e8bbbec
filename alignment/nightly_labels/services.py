"""Labelling jobs for nightly samples: a random audit of the judged chats, and more of the judge's False."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from common.inbox.services import Kind, inbox_add
from common.jsonl import in_batches
from evaluation.gateway.rows import rows_update
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import UNITS_LEFT, Run, Unit, Verdict
from labeling.chats.core.allocation import AllocationRule
from labeling.jobs.services import job_open
from labeling.models.chats import PLAN, ChatSet, ChatSetMember, Split
from labeling.models.labels import LabelingJob
from labeling.models.rubric import Criterion
from labeling.models.sampling import SampledChat, SampleDraw, SamplePlan
from labeling.people.services.roles import rater_for
from labeling.sampling.core import (
    JudgedChat,
    LabelProbabilities,
    LabelSample,
    LabelSource,
    audit_size,
    sample_labels,
)
from labeling.sampling.services import free_set_name

log = logging.getLogger(__name__)

AT_ONCE = 1000
PROBLEM_LENGTH = 300
# A run that stopped before its end gets its job after so long, on the chats that it judged.
WAIT_FOR = timedelta(hours=24)
ENDED = (Run.State.DONE, Run.State.DONE_WITH_FAILURES, Run.State.CANCELLED)
NONE_JUDGED = "The judge judged no chat of this night."


@dataclass(frozen=True, slots=True)
class Judged:
    """The judged chats of a night: all of a finished run, a random part of a stopped one.

    `rows` and `chats` are in the same order; `criteria` are those that raters are asked.
    """

    rows: Sequence[SampledChat]
    chats: Sequence[JudgedChat]
    criteria: Sequence[Criterion]

    @property
    def suspects(self) -> set[int]:
        """Ids of the chats with a verdict of False."""
        return {int(one.chat) for one in self.chats if one.suspect}


def night_jobs_work(now: datetime | None = None) -> None:
    """Open the labelling job of every night whose judge has ended, once."""
    now = now or timezone.now()
    nights = NightlyRun.objects.filter(draw__in=SampleDraw.objects.without_job(), run__isnull=False)
    for night in nights.select_related("run", "draw").order_by("pk"):
        run = night.run
        stopped = run and run.state == Run.State.PAUSED and night.draw.drawn_at < now - WAIT_FOR
        if run and (run.state in ENDED or stopped):
            try:
                night_job_open(draw=night.draw, run=run)
            except Exception:
                log.exception("no labelling job for sample %s", night.draw_id)


def night_job_open(*, draw: SampleDraw, run: Run) -> LabelingJob | None:
    """Sample the judged chats for the raters and open their job; None if there is nothing to label.

    Where the job cannot be opened, say because a rater left, the reason is stored, and news for the owner.
    """
    try:
        return _open(draw, run)
    except ValidationError as problem:
        _refused(draw, " ".join(problem.messages)[:PROBLEM_LENGTH])
        return None


@transaction.atomic
def _open(draw: SampleDraw, run: Run) -> LabelingJob | None:
    row = SampleDraw.objects.select_for_update(no_key=True, of=("self",)).get(pk=draw.pk)
    if row.job_id or row.labels_done:
        return LabelingJob.objects.filter(pk=row.job_id or 0).first()
    plan = SamplePlan.objects.select_related("rubric", "group", "created_by").get(pk=row.plan_id)
    judged = judged_chats(row, run, plan)
    audit = audit_size(len(judged.chats), share=plan.audit_share)
    sample = sample_labels(judged.chats, audit=audit, oversample=plan.oversample, seed=row.seed)
    _store_probabilities(judged, sample)
    row.labels_done, row.labels_problem = True, "" if judged.chats else NONE_JUDGED
    if sample.chats:
        row.job = _job(row, plan, judged, _chat_set(row, run, plan, judged, sample))
    row.save(update_fields=["job", "labels_done", "labels_problem"])
    return row.job


def judged_chats(draw: SampleDraw, run: Run, plan: SamplePlan) -> Judged:
    """Return the chats of which the run has judged every group, and whether it said False; four queries.

    The probability of a chat is that of its topic, times the judged part of the topic's sample.
    """
    criteria = list(plan.criteria.filter(state=Criterion.State.ACTIVE)) or list(
        plan.rubric.criteria.filter(state=Criterion.State.ACTIVE)
    )
    open_chats = set(
        Unit.objects.filter(run=run, state__in=UNITS_LEFT).order_by().values_list("chat", flat=True)
    )
    whole = list(draw.chats.order_by("pk"))
    rows = [one for one in whole if one.chat_id not in open_chats]
    false = Verdict.objects.filter(run=run, criterion__in=criteria, value=False)
    suspects = set(false.order_by().values_list("chat", flat=True))
    sampled, done = (Counter(one.stratum for one in part) for part in (whole, rows))
    chats = [
        JudgedChat(
            one.chat_id,
            one.chat_id in suspects,
            min(1.0, one.probability * done[one.stratum] / sampled[one.stratum]),
        )
        for one in rows
    ]
    return Judged(rows, chats, criteria)


def _store_probabilities(judged: Judged, sample: LabelSample) -> None:
    """Store with every judged chat its probabilities to be labelled, and with the labelled ones why."""
    sources = {one.chat: one.source.value for one in sample.chats}
    rows = [
        (
            chat.probability * sample.probabilities.audit,
            sample.probabilities.of(chat),
            sources.get(row.chat_id, ""),
            row.pk,
        )
        for row, chat in zip(judged.rows, judged.chats, strict=True)
    ]
    names = ("audit_probability", "label_probability", "label_source")
    for batch in in_batches(rows, AT_ONCE):
        rows_update(SampledChat, names, batch)


def _chat_set(draw: SampleDraw, run: Run, plan: SamplePlan, judged: Judged, sample: LabelSample) -> ChatSet:
    """Create the raters' set. Nothing in it that raters see tells an audited chat from a suspect one.

    Its members have the probability to be labelled once judged, as other samples of a run.
    """
    chat_set = ChatSet.objects.create(
        name=free_set_name(f"{plan.name} {draw.day}: raters"),
        kind=ChatSet.Kind.SAMPLE,
        rubric_id=plan.rubric_id,
        sampling=_record(draw, run, plan, judged, sample),
        created_by=plan.created_by,
    )
    topics = {row.chat_id: row.stratum for row in judged.rows}
    within = {one.chat: replace(one, probability=1.0) for one in judged.chats}
    ChatSetMember.objects.bulk_create(
        (
            ChatSetMember(
                chat_set=chat_set,
                chat_id=one.chat,
                position=position,
                split=Split.DEV,
                stratum=topics[int(one.chat)],
                inclusion_probability=sample.probabilities.of(within[one.chat]),
            )
            for position, one in enumerate(sample.chats, 1)
        ),
        batch_size=AT_ONCE,
    )
    return chat_set


def _record(
    draw: SampleDraw, run: Run, plan: SamplePlan, judged: Judged, sample: LabelSample
) -> dict[str, Any]:
    """Return the sampling record that weighted rates of the run need. NB: rater pages never show it."""
    return {
        PLAN: plan.pk,
        "day": draw.day.isoformat(),
        "run": run.pk,
        "run_split": "",
        "criteria": [row.key for row in judged.criteria],
        "rule": AllocationRule.PROPORTIONAL.value,
        "minimum": 0,
        "topics": [],
        "seed": draw.seed,
        "split": Split.DEV.value,
        "oversampled": any(one.source is LabelSource.SUSPECT for one in sample.chats),
        "strata": _strata(judged, sample.probabilities, {int(one.chat) for one in sample.chats}),
        "source": f"plan {plan.pk}",
    }


def _strata(judged: Judged, chances: LabelProbabilities, labelled: set[int]) -> list[Mapping[str, Any]]:
    suspects = judged.suspects
    sizes = Counter((row.chat_id in suspects, row.stratum) for row in judged.rows)
    drawn = Counter((row.chat_id in suspects, row.stratum) for row in judged.rows if row.chat_id in labelled)
    return [
        {
            "stratum": topic,
            "judge_false": suspect,
            "topic": topic,
            "size": size,
            "drawn": drawn[suspect, topic],
            "probability": chances.suspect if suspect else chances.other,
        }
        for (suspect, topic), size in sorted(sizes.items())
    ]


def _job(draw: SampleDraw, plan: SamplePlan, judged: Judged, chat_set: ChatSet) -> LabelingJob:
    return job_open(
        chat_set=chat_set,
        name=f"{plan.name} {draw.day}",
        criteria=judged.criteria,
        overlap=plan.overlap,
        by=plan.created_by,
        raters=[rater_for(user=user) for user in plan.raters.filter(is_active=True)],
        group=plan.group,
        order=LabelingJob.Order.RANDOM,
        seed=draw.seed,
    )


@transaction.atomic
def _refused(draw: SampleDraw, problem: str) -> None:
    """Store why there is no job; a new reason is news for the plan's owner."""
    changed = SampleDraw.objects.filter(pk=draw.pk).exclude(labels_problem=problem)
    owner = draw.plan.created_by
    if changed.update(labels_problem=problem) and owner is not None:
        inbox_add(users=[owner], kind=Kind.NIGHTLY, subject=f"plan:{draw.plan_id}")
