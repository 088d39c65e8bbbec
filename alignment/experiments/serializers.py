"""Bodies of the API of experiments."""

from typing import Any

from rest_framework import serializers

from alignment.experiments.services import ALPHAS, ExperimentSettings
from common.api import StrictInput


class SettingsInput(StrictInput):
    """Settings; absent fields stay as they are."""

    control = serializers.CharField(required=False, help_text="A variant.")
    shares = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="Expected share of the units by variant, in any unit. {}: the same for each variant.",
    )
    starts_on = serializers.DateField(
        required=False, allow_null=True, help_text="Earlier chats do not count."
    )
    alpha = serializers.FloatField(required=False, help_text=f"One of {', '.join(map(str, ALPHAS))}.")


def settings_of(current: ExperimentSettings, values: dict[str, Any]) -> ExperimentSettings:
    """Return the settings with these changes."""
    return ExperimentSettings(
        values.get("control", current.control),
        values.get("shares", current.shares),
        values.get("starts_on", current.starts_on),
        values.get("alpha", current.alpha),
    )


class MetricOutput(serializers.Serializer[Any]):
    """A pass (1) or fail (0) of a chat on a criterion."""

    unit_id = serializers.CharField(help_text="The chat's unit_id; without one, a unit of its own.")
    timestamp = serializers.DateTimeField(help_text="When the chat began.")
    experiment_id = serializers.CharField()
    variation_id = serializers.CharField()
    metric = serializers.CharField(help_text="The criterion's key.")
    value = serializers.IntegerField()
    weight = serializers.FloatField(help_text="Inverse probability with which the chat was sampled.")


class MetricsOutput(serializers.Serializer[Any]):
    """Rows in the order in which they were added."""

    results = MetricOutput(many=True)
    cursor = serializers.CharField(help_text="Resumes after the last row, now or later.")
    has_more = serializers.BooleanField()
