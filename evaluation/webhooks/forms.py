"""The forms of webhooks: where events go, and a period to send again."""

from typing import Any

from django import forms

from common.problems import FieldProblem
from evaluation.models.outbox import SUBSCRIBED, WebhookEndpoint
from evaluation.webhooks.services import LONGEST_ADDRESS, LONGEST_NAME, WebhookChoice


class _ServiceForm(forms.Form):
    """A form that shows a service's error at its field."""

    def refuse(self, problem: FieldProblem) -> None:
        """Show the error."""
        self.add_error(problem.field, f"{problem.message[:1].upper()}{problem.message[1:]}.")


class WebhookForm(_ServiceForm):
    """A webhook; `choice` holds it once the form is valid."""

    name = forms.CharField(
        max_length=LONGEST_NAME, label="Name", help_text="Such as the system that receives the events."
    )
    address = forms.CharField(
        max_length=LONGEST_ADDRESS,
        label="Address",
        help_text="Receives POST requests with JSON. Redirects are not followed.",
        widget=forms.TextInput(attrs={"inputmode": "url", "spellcheck": "false", "autocomplete": "off"}),
    )
    kinds = forms.MultipleChoiceField(
        label="Events",
        choices=[(kind.value, f"{kind.label} ({kind.value})") for kind in SUBSCRIBED],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )

    choice: WebhookChoice

    def __init__(self, *args: Any, row: WebhookEndpoint | None = None, **kwargs: Any) -> None:
        first: dict[str, Any] = {"kinds": [SUBSCRIBED[0].value]}
        if row is not None:
            first = {"name": row.name, "address": row.address, "kinds": row.kinds}
        super().__init__(*args, **({"initial": first} | kwargs))

    def clean(self) -> dict[str, Any]:
        """Read the choice."""
        cleaned = dict(super().clean() or {})
        if not self.errors:
            self.choice = WebhookChoice(cleaned["name"], cleaned["address"], tuple(cleaned["kinds"]))
        return cleaned


def _moment(label: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, widget=widget)


class ReplayForm(_ServiceForm):
    """A period whose events are sent again."""

    since = _moment("From")
    until = _moment("Until")
