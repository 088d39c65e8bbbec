"""Forms of alerts: thresholds, and a day to snooze until."""

from dataclasses import fields
from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone

from alignment.alerts.services.acts import FEWEST_NIGHTS, MOST_NIGHTS, Thresholds
from alignment.models.alerts import AlertSettings
from common.problems import FieldProblem

SNOOZE = timedelta(days=7)


class ThresholdsForm(forms.Form):
    """The thresholds; `values` holds them once the form is valid."""

    alarm_percent = forms.FloatField(
        min_value=0.1,
        max_value=50,
        label="False alarms a year (%)",
        help_text="Probability of at least one in a year without a change, over all criteria.",
    )
    tolerance_points = forms.FloatField(
        min_value=0,
        max_value=20,
        label="Tolerance (points)",
        help_text="A rate may move this far from its baseline without an alert.",
    )
    baseline_nights = forms.IntegerField(
        min_value=FEWEST_NIGHTS,
        max_value=MOST_NIGHTS,
        label="Nights of a baseline",
        help_text="Whole weeks. Longer baselines find smaller changes. Frozen baselines stay.",
    )
    guard = forms.IntegerField(
        min_value=30,
        max_value=100_000,
        label="Anchors before the bot is named",
        help_text="Passing anchors to judge again after an alarm before it counts as the bot’s.",
    )
    mark_limit = forms.FloatField(
        min_value=1,
        max_value=20,
        label="Mark weeks above",
        help_text="CUSUM limit, in standard errors. Marks on charts are no alerts.",
    )
    fewest_verdicts = forms.IntegerField(
        min_value=0,
        max_value=1_000_000,
        label="Fewest verdicts of a criterion",
        help_text="Applicable ones in seven nights. 0: no alert.",
    )
    fewest_chats = forms.IntegerField(
        min_value=0,
        max_value=1_000_000,
        label="Fewest judged chats of a topic",
        help_text="Judged in seven nights, of at least twice as many that arrived. 0: no alert.",
    )

    @classmethod
    def of(cls, row: AlertSettings) -> "ThresholdsForm":
        """Return the form with the thresholds in force."""
        return cls(initial={field.name: getattr(row, field.name) for field in fields(Thresholds)})

    @property
    def values(self) -> Thresholds:
        """Return the thresholds."""
        return Thresholds(**{field.name: self.cleaned_data[field.name] for field in fields(Thresholds)})

    def refuse(self, problem: FieldProblem) -> None:
        """Show the service's problem at its field."""
        self.add_error(problem.field if problem.field in self.fields else None, problem.message)


class SnoozeForm(forms.Form):
    """A day to snooze until, by default in a week."""

    until = forms.DateField(label="Snooze until", widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, initial={"until": timezone.localdate() + SNOOZE})
