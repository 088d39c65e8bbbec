"""The form for what the workspace sets of a model, and the name of another model."""

import json
from typing import Any, get_args

from django import forms

from common.guarded_json import guarded_loads
from common.problems import FieldProblem
from evaluation.endpoints.core.profile import (
    FIELDS,
    LARGEST,
    LONGEST_TIMEOUT,
    Schema,
    TokenLimit,
    fields_read,
)

LABELS = {
    "reasons": "Reasons before it answers",
    "room": "Room for thoughts, tokens",
    "token_limit": "Token limit parameter",
    "most_tokens": "Most tokens of an answer",
    "context": "Context, tokens",
    "temperature": "Takes temperature",
    "top_p": "Takes top_p",
    "seed": "Takes seed",
    "effort": "Takes reasoning effort",
    "efforts": "Efforts it takes",
    "logprobs": "Gives token probabilities",
    "schema": "Response format",
    "cache_key": "Takes prompt_cache_key",
    "cache_control": "Takes cache marks",
    "extra": "Further fields",
    "timeout": "Time-out, seconds",
}
_HELP = {
    "room": "In addition to the answer. Empty: by effort, 8,000 and up.",
    "most_tokens": "The largest limit that the model accepts.",
    "efforts": "Such as low, medium, high. Another effort is sent as the nearest.",
    "context": "Prompt and answer together.",
    "extra": 'JSON sent with every request, such as {"enable_thinking": true}.',
    "timeout": "Empty: from the settings.",
}
_NUMBERS = {"room": LARGEST, "most_tokens": LARGEST, "context": LARGEST, "timeout": LONGEST_TIMEOUT}
_WORDS = {"token_limit": get_args(TokenLimit), "schema": get_args(Schema)}
_UNSET = ("", "not set")


class ModelForm(forms.Form):
    """What the workspace sets of a model; an empty field leaves it to what is learned and known."""

    def __init__(self, *args: Any, chosen: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in FIELDS:
            self.fields[name] = _field(name)
        self.initial = {name: _initial(value) for name, value in (chosen or {}).items()}

    def clean(self) -> dict[str, Any]:
        """Read the fields; a wrong value becomes the error of its field."""
        cleaned = {name: _read(value) for name, value in (super().clean() or {}).items()}
        try:
            fields_read({name: value for name, value in cleaned.items() if value is not None})
        except FieldProblem as problem:
            self.add_error(problem.field, problem.message)
        return cleaned

    def clean_efforts(self) -> list[str] | None:
        """Read the list."""
        return [word.strip() for word in self.cleaned_data["efforts"].split(",") if word.strip()] or None

    def clean_extra(self) -> Any:
        """Read the JSON object."""
        text = self.cleaned_data["extra"].strip()
        if not text:
            return None
        try:
            return guarded_loads(text)
        except ValueError:
            raise forms.ValidationError("Enter a JSON object.") from None


class NameForm(forms.Form):
    """The name of a model to add to the list."""

    model = forms.CharField(max_length=200, label="Model", help_text="As the endpoint names it.")
    endpoint = forms.CharField(max_length=200, required=False, widget=forms.HiddenInput)


def _field(name: str) -> forms.Field:
    label, text = LABELS[name], _HELP.get(name, "")
    if name in _NUMBERS:
        return forms.IntegerField(
            required=False, min_value=1, max_value=_NUMBERS[name], label=label, help_text=text
        )
    if name == "efforts":
        return forms.CharField(required=False, max_length=100, label=label, help_text=text)
    if name == "extra":
        area = forms.Textarea(attrs={"rows": 2, "spellcheck": "false"})
        return forms.CharField(required=False, max_length=5000, label=label, help_text=text, widget=area)
    words = _WORDS.get(name)
    choices = [(word, word) for word in words] if words else [("yes", "yes"), ("no", "no")]
    return forms.ChoiceField(required=False, choices=[_UNSET, *choices], label=label)


def _initial(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


def _read(value: Any) -> Any:
    """Return a field's value: None if it is not set."""
    return {"": None, "yes": True, "no": False}.get(value, value) if isinstance(value, str) else value
