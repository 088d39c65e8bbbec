"""Runs that are started from a page: what one would ask and cost, and starting it."""

from dataclasses import dataclass

from django.db import IntegrityError, transaction

from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeChoice
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.runs import Run
from evaluation.runs.services.control import run_launch
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import RunChoice
from evaluation.runs.worker.estimate import Estimate
from labeling.models.chats import ChatSet
from labeling.models.people import User

# A page does not wait for 100,000 chats to be walked: so many are looked at and the figures scaled up.
MOST_CHATS = 200


@dataclass(frozen=True, slots=True)
class Started:
    """A run; `again`: the same form had started it before."""

    run: Run
    again: bool = False


def start_estimate(*, chat_set: ChatSet, judge: JudgeChoice, run: RunChoice) -> Estimate:
    """What the run would ask and cost today; of a large set from a part of its chats. Raises InputProblem."""
    return estimate_for(
        chat_set=chat_set, judge=judge, run=run, endpoint=current_endpoint(), most_chats=MOST_CHATS
    )


def start_run(
    *, chat_set: ChatSet, judge: JudgeChoice, run: RunChoice, profile: JudgeProfile, by: User
) -> Started:
    """Plan the run and ring for a worker, or find the one that was started so. Raises InputProblem."""
    try:
        return _start_run(chat_set=chat_set, judge=judge, run=run, profile=profile, by=by)
    except IntegrityError:
        # The second of two presses in the same moment: the first one's run is stored by now.
        if (earlier := _started(run)) is None:
            raise
        return earlier


@transaction.atomic
def _start_run(
    *, chat_set: ChatSet, judge: JudgeChoice, run: RunChoice, profile: JudgeProfile, by: User
) -> Started:
    """A new judge remembers its profile."""
    if earlier := _started(run):
        return earlier
    started = run_launch(chat_set=chat_set, judge=judge, run=run, endpoint=current_endpoint(), by=by)
    Judge.objects.filter(pk=started.judge_id, profile=None).update(profile=profile)
    return Started(started)


def _started(run: RunChoice) -> Started | None:
    earlier = Run.objects.filter(source_hash=run.source_hash).first() if run.source_hash else None
    return Started(earlier, again=True) if earlier else None
