"""The judge of a sample plan, and the run that it starts on each night's sample."""

from django.db import models
from django.db.models import Q

from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet
from labeling.models.sampling import SampleDraw, SamplePlan


class NightlyJudge(models.Model):
    """What judges a plan's samples, and the budget of a night."""

    plan = models.OneToOneField(SamplePlan, on_delete=models.PROTECT, related_name="+")
    profile = models.ForeignKey(JudgeProfile, on_delete=models.PROTECT, related_name="+")
    # Null: no limit.
    budget_usd = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    mode = models.CharField(max_length=5, choices=Run.Mode.choices, default=Run.Mode.LIVE)
    # The first `anchors` chats of a curated set: judged anew every night, from the same budget.
    anchor_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    anchors = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(anchor_set=None, anchors=0) | Q(anchor_set__isnull=False, anchors__gte=1),
                name="nightlyjudge_anchors",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan_id}: {self.profile_id}"


class NightlyRun(models.Model):
    """The judge's run on a night's sample; `problem`: why it could not start, or what it waits for."""

    draw = models.OneToOneField(SampleDraw, on_delete=models.PROTECT, related_name="+")
    run = models.OneToOneField(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    problem = models.CharField(max_length=500, blank=True, default="")
    anchor_run = models.OneToOneField(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    anchor_problem = models.CharField(max_length=500, blank=True, default="")
    tried_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.draw_id}: {self.run_id or self.problem}"
