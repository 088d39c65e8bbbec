"""The form of an experiment's settings."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString

from alignment.experiments.services import ALPHAS, ExperimentSettings
from common.problems import FieldProblem
from common.safe_text import visible

LEVELS = {0.01: "99%", 0.05: "95%", 0.1: "90%"}


class ExperimentForm(forms.Form):
    """Settings with a share for each variant; `settings` holds them once the form is valid."""

    control = forms.ChoiceField(label="Control variant")
    starts_on = forms.DateField(
        label="Start",
        required=False,
        help_text="Chats of earlier days do not count. Empty: all chats.",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    alpha = forms.TypedChoiceField(
        label="Confidence of intervals",
        coerce=float,
        choices=[(str(alpha), LEVELS[alpha]) for alpha in ALPHAS],
        help_text="Choose it before you look at results.",
    )

    settings: ExperimentSettings

    def __init__(
        self, *args: Any, current: ExperimentSettings, variants: Sequence[str], **kwargs: Any
    ) -> None:
        self._variants = variants
        equal = round(100 / len(variants), 2) if variants else 0
        shares = {_name(at): current.shares.get(one, equal) for at, one in enumerate(variants)}
        first = {"control": current.control, "starts_on": current.starts_on, "alpha": str(current.alpha)}
        super().__init__(*args, **({"initial": first | shares} | kwargs))
        control: Any = self.fields["control"]
        control.choices = [(one, one) for one in variants]
        for at, one in enumerate(variants):
            self.fields[_name(at)] = forms.FloatField(
                label=format_html("Expected share of {}, in %", SafeString(visible(one))),
                min_value=0.01,
                max_value=100,
            )

    @property
    def shares(self) -> list[forms.BoundField]:
        """The fields of the shares."""
        return [self[_name(at)] for at in range(len(self._variants))]

    def clean(self) -> dict[str, Any]:
        """Read the settings."""
        cleaned = dict(super().clean() or {})
        if not self.errors:
            shares = {one: cleaned[_name(at)] for at, one in enumerate(self._variants)}
            if abs(sum(shares.values()) - 100) > 0.1:
                self.add_error(_name(0), f"The shares add up to {sum(shares.values()):g}%, not 100%.")
            self.settings = ExperimentSettings(
                cleaned["control"], shares, cleaned["starts_on"], cleaned["alpha"]
            )
        return cleaned

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's error at its field."""
        name = problem.field if problem.field in self.fields else _name(0)
        self.add_error(name, f"{problem.message[:1].upper()}{problem.message[1:]}.")


def _name(at: int) -> str:
    return f"share_{at}"
