"""Starts runs from a page: the estimate and the start."""

from dataclasses import dataclass, replace

from django.db import IntegrityError, transaction

from common.problems import InputProblem
from evaluation.judges.core.spec import EngineName, JudgeSpec
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.recipes import AUTO_DEBATES
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.runs import Run
from evaluation.runs.services.control import run_launch
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import RunChoice
from evaluation.runs.worker.estimate import Estimate
from labeling.models.chats import ChatSet
from labeling.models.people import User

# A page does not wait for 100,000 chats: this many are replayed and the figures scaled up.
MOST_CHATS, MOST_COMPARED = 200, 50


# Shown beside each other: what debating the difficult criteria costs.
OTHER_ENGINES: dict[EngineName, EngineName] = {"direct": "auto", "auto": "direct"}


@dataclass(frozen=True, slots=True)
class OtherEngine:
    """What the same run takes with another engine; `debated` are the criteria that `auto` debates."""

    engine: EngineName
    debated: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run; `again` if the same form had already started it."""

    run: Run
    again: bool = False


def start_estimate(*, chat_set: ChatSet, judge: JudgeSpec, run: RunChoice) -> Estimate:
    """Return today's calls and cost of the run, from a part of a large set. Raises InputProblem."""
    return estimate_for(
        chat_set=chat_set, judge=judge, run=run, endpoint=judge_endpoint(judge), most_chats=MOST_CHATS
    )


def other_engine_estimate(*, chat_set: ChatSet, judge: JudgeSpec, run: RunChoice) -> OtherEngine | None:
    """Return the estimate of engine `auto` beside `direct`, and of `direct` beside `auto`; else None.

    It looks at fewer chats than the run's own estimate, and is None where it cannot be had.
    """
    other = OTHER_ENGINES.get(judge.engine)
    if other is None:
        return None
    try:
        estimate = estimate_for(
            chat_set=chat_set,
            judge=replace(judge, engine=other),
            run=run,
            endpoint=judge_endpoint(judge),
            most_chats=MOST_COMPARED,
        )
    except InputProblem:
        return None
    return OtherEngine(other, AUTO_DEBATES[judge.auto_debates], estimate)


def start_run(
    *, chat_set: ChatSet, judge: JudgeSpec, run: RunChoice, profile: JudgeProfile | None, by: User
) -> StartedRun:
    """Plan the run and notify a worker, or return the run that the same form or request has started.

    A new judge remembers its `profile`. Raises InputProblem.
    """
    try:
        return _start_run(chat_set=chat_set, judge=judge, run=run, profile=profile, by=by)
    except IntegrityError:
        # The second of two simultaneous clicks: the first one's run is stored by now.
        if (earlier := _started(run)) is None:
            raise
        return earlier


@transaction.atomic
def _start_run(
    *, chat_set: ChatSet, judge: JudgeSpec, run: RunChoice, profile: JudgeProfile | None, by: User
) -> StartedRun:
    if earlier := _started(run):
        return earlier
    started = run_launch(chat_set=chat_set, judge=judge, run=run, endpoint=judge_endpoint(judge), by=by)
    if profile is not None:
        Judge.objects.filter(pk=started.judge_id, profile=None).update(profile=profile)
    return StartedRun(started)


def _started(run: RunChoice) -> StartedRun | None:
    earlier = Run.objects.filter(source_hash=run.source_hash).first() if run.source_hash else None
    return StartedRun(earlier, again=True) if earlier else None
