"""The form of an endpoint: where it is, its key, its models with prices, and its limits."""

import re
from typing import Any, NamedTuple

from django import forms

from common.problems import FieldProblem
from evaluation.connections.services import Connection
from evaluation.endpoints.core.presets import Preset
from evaluation.gateway.keys import Secret
from evaluation.models.endpoints import ConnectedEndpoint

LONGEST_KEY, LONGEST_MODEL = 4000, 200
PRICE = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?", re.ASCII)


class ModelLine(NamedTuple):
    """One line of the field of models; `price` is empty without prices."""

    model: str
    price: tuple[tuple[str, str], ...]


def model_line(number: int, line: str) -> ModelLine:
    """Return a model with its prices; raises ValueError with one sentence.

    Examples
    --------
    >>> model_line(1, "gpt-4.1-mini, 0.40, 1.60").price
    (('input', '0.40'), ('output', '1.60'))
    """
    model, *texts = (part.strip().removeprefix("$") for part in line.split(","))
    if not 0 < len(model) <= LONGEST_MODEL or "\0" in model:
        raise ValueError(f"Line {number}: the model's name needs 1 to {LONGEST_MODEL} characters.")
    if len(texts) not in (0, 2, 3):
        raise ValueError(f"Line {number}: enter input and output price, and cached input if it differs.")
    for text in texts:
        if not PRICE.fullmatch(text):
            raise ValueError(f"Line {number}: {text[:20]} is no price in US dollars, such as 0.40.")
    return ModelLine(model, tuple(zip(("input", "output", "cached_input"), texts, strict=False)))


class EndpointForm(forms.Form):
    """An endpoint that a lead connects; `choice` holds it once the form is valid."""

    name = forms.CharField(
        max_length=80,
        label="Name",
        help_text="Judge profiles and runs show it.",
    )
    address = forms.CharField(
        max_length=200,
        label="Base URL",
        widget=forms.TextInput(attrs={"inputmode": "url", "spellcheck": "false", "autocomplete": "off"}),
    )
    api_key = forms.CharField(
        required=False,
        max_length=LONGEST_KEY,
        strip=True,
        label="API key",
        # NB: a browser fills in and offers to save what it takes for a sign-in.
        widget=forms.PasswordInput(
            render_value=False,
            attrs={"autocomplete": "new-password", "data-1p-ignore": "", "data-lpignore": "true"},
        ),
    )
    remove_key = forms.BooleanField(required=False, label="Remove the stored key")
    models = forms.CharField(
        required=False,
        max_length=20_000,
        label="Models, with prices",
        help_text="One a line; the first is the default. Prices are optional, in US dollars per 1,000,000 "
        "tokens: model, input, output, cached input.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
    )
    requests_per_minute = forms.IntegerField(
        required=False, min_value=1, max_value=10_000_000, label="Requests per minute"
    )
    tokens_per_minute = forms.IntegerField(
        required=False, min_value=1, max_value=2_000_000_000, label="Tokens per minute"
    )
    max_in_flight = forms.IntegerField(
        required=False, min_value=1, max_value=10_000, label="Calls at once", help_text="Per worker process."
    )
    api_version = forms.CharField(
        required=False,
        max_length=40,
        label="API version",
        help_text="Only for an older address of Azure, such as 2024-10-21.",
    )
    batch = forms.BooleanField(required=False, label="Has OpenAI's Batch API")

    choice: Connection

    def __init__(
        self, *args: Any, preset: Preset, row: ConnectedEndpoint | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.preset, self.row = preset, row
        self.initial = _endpoint_initial(row) if row else _preset_initial(preset)
        stored = ""
        if row is not None and row.key:
            ends = f", ends with {row.key_hint}" if row.key_hint else ""
            stored = f"A key is set{ends}. Enter another one to replace it. "
        told = stored or f"{preset.key} "
        self.fields["api_key"].help_text = f"{told}Stored encrypted and never shown again."
        if not stored:
            del self.fields["remove_key"]

    def clean_api_version(self) -> str:
        """Refuse what is no version."""
        version: str = self.cleaned_data["api_version"].strip()
        if version and not re.fullmatch(r"[\w.-]{1,40}", version, re.ASCII):
            raise forms.ValidationError("Enter a version such as 2024-10-21.")
        return version

    def clean_models(self) -> list[ModelLine]:
        """Read the lines."""
        lines = [line.strip() for line in self.cleaned_data["models"].splitlines() if line.strip()]
        try:
            read = [model_line(number, line) for number, line in enumerate(lines, start=1)]
        except ValueError as problem:
            raise forms.ValidationError(str(problem)) from None
        names = [line.model for line in read]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise forms.ValidationError(f"{twice} is listed twice.")
        return read

    def clean(self) -> dict[str, Any]:
        """Read the choice."""
        cleaned = dict(super().clean() or {})
        if not self.errors:
            lines: list[ModelLine] = cleaned["models"]
            self.choice = Connection(
                name=cleaned["name"].strip(),
                address=cleaned["address"],
                key=Secret(cleaned["api_key"]),
                remove_key=bool(cleaned.get("remove_key")),
                preset=self.row.preset if self.row else self.preset.id,
                api_version=cleaned["api_version"],
                models=tuple(line.model for line in lines),
                prices={line.model: dict(line.price) for line in lines if line.price},
                requests_per_minute=cleaned["requests_per_minute"],
                tokens_per_minute=cleaned["tokens_per_minute"],
                max_in_flight=cleaned["max_in_flight"],
                batch=cleaned["batch"],
            )
        return cleaned

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's error at its field."""
        field = {"key": "api_key"}.get(problem.field, problem.field)
        self.add_error(field, f"{problem.message[:1].upper()}{problem.message[1:]}.")

    @property
    def main_fields(self) -> list[forms.BoundField]:
        """Return the fields that every endpoint needs."""
        names = ("name", "address", "api_key", "remove_key", "models")
        return [self[name] for name in names if name in self.fields]

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        """Return the fields for its limits."""
        return [self[name] for name in ("requests_per_minute", "tokens_per_minute", "max_in_flight")]

    @property
    def more_fields(self) -> list[forms.BoundField]:
        """Return the fields that few endpoints need."""
        return [self["api_version"], self["batch"]]

    @property
    def more_open(self) -> bool:
        """Return whether the collapsed section has an error, or a version that the preset needs."""
        return bool(self.initial.get("api_version")) or "api_version" in self.errors


def _preset_initial(preset: Preset) -> dict[str, Any]:
    named = {} if preset.id == "other" else {"name": preset.name}
    return named | {"address": preset.address, "models": preset.models, "batch": preset.batch}


def _endpoint_initial(row: ConnectedEndpoint) -> dict[str, Any]:
    limits = ("requests_per_minute", "tokens_per_minute", "max_in_flight")
    names = ("name", "address", "api_version", "batch", *limits)
    lines = [", ".join([model, *_price_texts(row.prices.get(model) or {})]) for model in row.model_names]
    return {name: getattr(row, name) for name in names} | {"models": "\n".join(lines)}


def _price_texts(price: dict[str, str]) -> list[str]:
    return [price[name] for name in ("input", "output", "cached_input") if name in price]
