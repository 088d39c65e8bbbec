"""The run of the direct engine to which a debate is compared."""

from django.db.models import Exists, OuterRef

from evaluation.judges.core.direct_counterpart import is_direct_counterpart
from evaluation.models.judges import Engine, Judge, JudgePrompt
from evaluation.models.runs import FINISHED, Run, RunChat


def direct_run_of(run: Run) -> Run | None:
    """Return the newest finished run of a debate's direct counterpart on all of its chats; None without one.

    Two queries. Only evaluations count, so whoever may open the debate may open the other run.
    """
    prompts = JudgePrompt.objects.filter(judge=run.judge_id).values("prompt_version")
    same_prompts = JudgePrompt.objects.filter(judge=OuterRef("pk"), prompt_version__in=prompts)
    judges = Judge.objects.filter(Exists(same_prompts), engine=Engine.DIRECT, kind=Judge.Kind.LACE)
    counterparts = [row.pk for row in judges if is_direct_counterpart(row.config, run.judge.config)]
    if not counterparts:
        return None
    judged = RunChat.objects.filter(run=OuterRef(OuterRef("pk")), chat=OuterRef("chat"))
    missing = RunChat.objects.filter(~Exists(judged), run=run.pk)
    runs = Run.objects.filter(
        ~Exists(missing), judge__in=counterparts, purpose=Run.Purpose.EVALUATION, state__in=FINISHED
    )
    return runs.order_by("-pk").first()
