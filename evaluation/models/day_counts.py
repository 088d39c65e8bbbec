"""Verdicts counted by day and topic, kept with the verdicts: pages of production read these, not verdicts."""

from django.db import models

from evaluation.models.runs import Run
from labeling.models.chats import Topic
from labeling.models.rubric import Criterion


class DayPlace(models.Model):
    """What a run's chats are counted by. The run names the judge, and with it the prompt versions."""

    # Counts go with their run, as where an import of verdicts is undone: they follow from its verdicts.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    # On which the chat started, or of the plan's sample that it was judged in; in the site's time zone.
    day = models.DateField()
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="+")
    # The bot's version, from the chat's metadata.
    version = models.CharField(max_length=80, blank=True, default="")
    experiment = models.CharField(max_length=80, blank=True, default="")
    variant = models.CharField(max_length=80, blank=True, default="")
    # Judged chats, with or without a verdict.
    chats = models.IntegerField(default=0)

    class Meta:
        abstract = True


PLACE = ("run", "day", "topic", "version", "experiment", "variant")


class DayCount(DayPlace):
    """Chats of a run, day and topic by the verdict on a criterion; the rest of `chats` have no verdict."""

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    passed = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    not_applicable = models.IntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=[*PLACE, "criterion"], name="daycount_cell")]
        indexes = [models.Index(fields=["criterion", "day"], name="daycount_criterion_day")]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.day} {self.topic_id} {self.criterion_id}"


class DayScore(DayPlace):
    """Sums over chats of a run, day and topic: applicable answers a, and passing ones y in ten-thousandths.

    `part` is `score` (session score, a = 1), `score_all` (the same with subjective criteria), or a dimension
    as `dimension:KEY`. `tenth` is that of a session score, rounded down: 10 for 1; -1 elsewhere.
    """

    part = models.CharField(max_length=80)
    tenth = models.SmallIntegerField(default=-1)
    answers = models.IntegerField(default=0)
    passes = models.BigIntegerField(default=0)
    answers_squared = models.BigIntegerField(default=0)
    passes_squared = models.BigIntegerField(default=0)
    products = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=[*PLACE, "part", "tenth"], name="dayscore_cell")]
        indexes = [models.Index(fields=["part", "day"], name="dayscore_part_day")]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.day} {self.topic_id} {self.part}"
