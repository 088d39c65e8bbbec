"""Labels of the random audit beside the judge's verdicts, counted by night: pages read these, not labels."""

from django.db import models

from evaluation.models.runs import Run
from labeling.models.sampling import SampleDraw


class AuditNight(models.Model):
    """A night whose judged chats were sampled for raters; `fingerprint` of what its counts were made from."""

    draw = models.OneToOneField(SampleDraw, on_delete=models.PROTECT, related_name="+")
    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="+")
    fingerprint = models.CharField(max_length=64)
    # Chats that the raters were given, and those of them that are holdout in some set.
    labelled = models.PositiveIntegerField(default=0)
    holdout = models.PositiveIntegerField(default=0)
    # Judged chats: [[day, topic, suspect, chats]]. `suspect`: with a verdict of False, where raters got more
    # of these than of the others. Within each part the labelled chats are a random sample.
    groups = models.JSONField(default=list)
    counted_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.draw_id}: {self.run_id}"


class AuditCount(models.Model):
    """Labelled chats of a night by what raters and judge answered about a criterion, dimension or score.

    `part` is `criterion:KEY`, or as `DayScore.part`. `cells` are [[day, topic, experiment, variant, suspect,
    holdout, human a, human y, judge a, judge y, chats]] with a applicable answers, y passing ones in
    ten-thousandths, and a = y = 0 for no verdict of the judge.
    """

    night = models.ForeignKey(AuditNight, on_delete=models.CASCADE, related_name="counts")
    part = models.CharField(max_length=100)
    cells = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["night", "part"], name="auditcount_once")]

    def __str__(self) -> str:
        return f"{self.night_id}: {self.part}"
