"""Forms of the prompt editor."""

from typing import Any, cast

from django import forms

from evaluation.prompts.core.example_lines import LONGEST_RATIONALE

ANSWERS = {"true": True, "false": False, "na": None}


class SaveForm(forms.Form):
    """Saves the stored draft as a version; `revision` is the one that the page shows."""

    reason = forms.CharField(
        max_length=500,
        label="Reason for the change",
        help_text="Stored with the version.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    revision = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    # The newest version that the page has listed.
    confirmed = forms.IntegerField(min_value=0, required=False, widget=forms.HiddenInput)


class ExampleForm(forms.Form):
    """An excerpt of a chat as a worked example; the services validate it."""

    first = forms.IntegerField(label="First turn", min_value=1)
    last = forms.IntegerField(label="Last turn", min_value=1)
    value = forms.ChoiceField(label="Answer", widget=forms.RadioSelect)
    rationale = forms.CharField(
        label="Why",
        max_length=LONGEST_RATIONALE,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="The judge reads this as a model rationale.",
    )

    def __init__(self, *args: Any, allow_na: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("true", "True"), ("false", "False"), *([("na", "Not applicable")] if allow_na else [])]
        cast(forms.ChoiceField, self.fields["value"]).choices = choices

    def line(self, chat: str) -> dict[str, Any]:
        """Return the example in the form of a draft."""
        data = self.cleaned_data
        return {
            "chat": chat,
            "turns": [data["first"], data["last"]],
            "value": ANSWERS[data["value"]],
            "rationale": data["rationale"].replace("\r\n", "\n"),
        }
