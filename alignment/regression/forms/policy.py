"""Form to revise the gate policy."""

from typing import Any

from django import forms

from alignment.models.regressions import Policy
from alignment.regression.queries.policy_page import LIMITS, Limit, policy_start
from alignment.regression.queries.tests import gate_policy

LONGEST_REASON = 2000
STEP = 0.001


class PolicyForm(forms.Form):
    """All limits of the current policy, and the reason of the change."""

    base_id = forms.IntegerField(required=False, widget=forms.HiddenInput)
    name = forms.CharField(max_length=120, label="Policy name")
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Reason",
        error_messages={"required": "Enter a reason. It is stored with the version."},
    )

    def __init__(self, data: Any = None, *, policy: Policy) -> None:
        self.policy = policy
        self._limits = gate_policy(policy).as_json()
        super().__init__(data, initial=self._limits | {"base_id": policy.pk})
        for group in LIMITS:
            for limit in group.limits:
                self.fields[limit.name] = _field(limit)

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Fields by rule."""
        return [
            {"rule": group.rule, "fields": [self[limit.name] for limit in group.limits]} for group in LIMITS
        ]

    @property
    def changes(self) -> dict[str, Any]:
        """Limits that differ from the current policy."""
        values = {name: self.cleaned_data[name] for name in self._limits if name in self.cleaned_data}
        return {name: value for name, value in values.items() if value != self._limits[name]}

    @property
    def base(self) -> Policy:
        """The policy that the form showed: a stored one, or the start values."""
        shown = Policy.objects.filter(pk=self.cleaned_data["base_id"]).first()
        return shown or policy_start(Policy.objects.filter(kind=Policy.Kind.GATE))


def _field(limit: Limit) -> forms.Field:
    if limit.unit == "yes":
        return forms.BooleanField(required=False, label=limit.words)
    if limit.unit in ("chats", "times"):
        return forms.IntegerField(
            min_value=1,
            max_value=1_000_000,
            label=limit.words,
        )
    return forms.FloatField(
        min_value=STEP,
        max_value=1 - STEP,
        label=limit.words,
        help_text={"points": "0.05 means 5 points.", "share": "0.70 means 70%."}.get(limit.unit, ""),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
