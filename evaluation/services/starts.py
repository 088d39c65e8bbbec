"""Runs that are started from a page: what one would ask and cost, and starting it."""

from functools import partial

from django.db import transaction

from evaluation.core.choice import JudgeChoice
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.runs import Run
from evaluation.runner.estimate import Estimate, run_estimate
from evaluation.runner.plan import current_endpoint
from evaluation.services.runs import RunChoice, run_start
from evaluation.tasks import drain
from labeling.models.chats import ChatSet
from labeling.models.people import User


@transaction.atomic
def start_estimate(*, chat_set: ChatSet, judge: JudgeChoice, run: RunChoice) -> Estimate:
    """What the run would ask and cost; planned for that, and nothing of it is kept. Raises InputProblem."""
    planned = run_start(chat_set=chat_set, judge=judge, run=run, endpoint=current_endpoint())
    found = run_estimate(planned)
    transaction.set_rollback(True)
    return found


@transaction.atomic
def start_run(
    *, chat_set: ChatSet, judge: JudgeChoice, run: RunChoice, profile: JudgeProfile, by: User
) -> Run:
    """Plan the run and ring for a worker; a new judge remembers its profile. Raises InputProblem."""
    started = run_start(chat_set=chat_set, judge=judge, run=run, endpoint=current_endpoint(), by=by)
    Judge.objects.filter(pk=started.judge_id, profile=None).update(profile=profile)
    transaction.on_commit(partial(drain.delay, started.pk))
    return started
