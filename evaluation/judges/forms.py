"""The form of a judge profile: the whole recipe, the most important settings first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from django import forms

from common.problems import FieldProblem
from evaluation.core.types import Engine
from evaluation.engines.core.roles import ROLES, JudgeRole
from evaluation.gateway.current import endpoint_choices, offered_models
from evaluation.judges.core.spec import LARGEST_NUMBER, MOST_SAMPLES, JudgeSpec, spec_from_json, spec_to_json
from evaluation.judges.queries.recipes import (
    ABLATIONS,
    AUTO_DEBATES,
    ENGINES,
    GROUPINGS,
    KNOWLEDGE,
    LAYOUTS,
    ROLES_IN,
    RULES,
)

EFFORTS = {"": "model default", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}
LAYOUT_CHOICES = {"auto": "by model", **LAYOUTS}
DEFAULTS = spec_to_json(JudgeSpec("direct"))
# The list of models that an input suggests.
OFFERED = {"list": "models-offered", "spellcheck": "false"}
# The form's fields of each role, by the recipe's setting.
_BY_ROLE = {"endpoints": "endpoint", "models": "model", "temperatures": "temperature", "efforts": "effort"}


@dataclass(frozen=True, slots=True)
class RoleFields:
    """One row of the table of roles."""

    name: str
    engines: str
    endpoint: forms.BoundField
    model: forms.BoundField
    temperature: forms.BoundField
    effort: forms.BoundField

    @property
    def fields(self) -> tuple[forms.BoundField, ...]:
        """Return the row's fields."""
        return self.endpoint, self.model, self.temperature, self.effort


def engines_text(role: JudgeRole) -> str:
    """Return the engines that ask a role, in words."""
    return "every engine" if role.engines == get_args(Engine) else ", ".join(role.engines)


class ProfileForm(forms.Form):
    """A named recipe; `choice` holds it once the form is valid."""

    name = forms.CharField(max_length=120, label="Name", help_text="Shown with runs and regression tests.")
    engine = forms.ChoiceField(choices=list(ENGINES.items()), label="Engine")
    samples = forms.IntegerField(
        min_value=1,
        max_value=MOST_SAMPLES,
        label="Samples",
        help_text="Answers per question; the majority decides. Two or more also measure noise.",
    )
    knowledge = forms.ChoiceField(choices=list(KNOWLEDGE.items()), label="Knowledge")
    endpoint = forms.ChoiceField(required=False, label="Endpoint")
    model = forms.CharField(
        required=False,
        max_length=200,
        label="Model",
        help_text="Empty: the endpoint's first model, or the server's default.",
        widget=forms.TextInput(attrs=OFFERED),
    )
    formatter = forms.CharField(
        required=False,
        max_length=200,
        label="Formatter model",
        help_text="Empty: the server's default formatter, or the same model.",
        widget=forms.TextInput(attrs=OFFERED),
    )

    auto_debates = forms.ChoiceField(
        required=False,
        choices=list(AUTO_DEBATES.items()),
        label="Debated",
        help_text="Used with engine auto only.",
    )
    grouping = forms.ChoiceField(choices=list(GROUPINGS.items()), label="Criteria per call")
    passage_tokens = forms.IntegerField(
        min_value=1,
        max_value=LARGEST_NUMBER,
        label="Passage tokens per call",
        help_text="Used with retrieved passages only.",
    )
    embedding_model = forms.CharField(
        required=False,
        max_length=200,
        label="Embedding model",
        help_text="Ranks retrieved passages by meaning too. Empty: by words only.",
    )
    layout = forms.ChoiceField(choices=list(LAYOUT_CHOICES.items()), label="Prompt order")
    role_in = forms.ChoiceField(choices=list(ROLES_IN.items()), label="Position of the task")
    logprobs = forms.BooleanField(
        required=False,
        label="Request token probabilities",
        help_text="Stores the token probability of TRUE if the endpoint returns it.",
    )

    rule = forms.ChoiceField(
        required=False,
        choices=[("", "no verdict"), *RULES.items()],
        label="Chats that are too long",
        help_text="With a rule, they are judged in overlapping windows.",
    )
    window_tokens = forms.IntegerField(
        required=False, min_value=1, max_value=LARGEST_NUMBER, label="Tokens per window"
    )
    overlap = forms.IntegerField(required=False, min_value=0, max_value=1000, label="Shared turns")
    ablation = forms.ChoiceField(
        required=False,
        choices=[("", "none"), *ABLATIONS.items()],
        label="Debate ablation",
        help_text="Changes a debate to measure the effect of its briefs.",
    )

    basic = ("name", "engine", "samples", "knowledge", "endpoint", "model", "formatter")
    shape = ("auto_debates", "grouping", "passage_tokens", "embedding_model", "layout", "role_in", "logprobs")
    long_chats = ("rule", "window_tokens", "overlap")
    trial = ("ablation",)

    choice: JudgeSpec

    def __init__(self, *args: Any, name: str = "", choice: JudgeSpec | None = None, **kwargs: Any) -> None:
        recipe = spec_to_json(choice) if choice else DEFAULTS
        super().__init__(*args, **kwargs)
        self.initial = {"name": name, **_initial(recipe)}
        used = {str(recipe["endpoint"]), *map(str, recipe["endpoints"].values())}
        own, names = endpoint_choices(used)
        cast(forms.ChoiceField, self.fields["endpoint"]).choices = [("", own), *names]
        for role in ROLES:
            self.fields[f"endpoint_{role.key}"] = forms.ChoiceField(
                required=False, choices=[("", "the judge's"), *names], label=f"Endpoint of {role.name}"
            )
            self.fields[f"model_{role.key}"] = forms.CharField(
                required=False,
                max_length=200,
                label=f"Model of {role.name}",
                widget=forms.TextInput(attrs=OFFERED),
            )
            self.fields[f"temperature_{role.key}"] = forms.FloatField(
                required=False, min_value=0, max_value=2, label=f"Temperature of {role.name}"
            )
            self.fields[f"effort_{role.key}"] = forms.ChoiceField(
                required=False, choices=list(EFFORTS.items()), label=f"Effort of {role.name}"
            )

    def clean(self) -> dict[str, Any]:
        """Read the recipe; a wrong setting becomes the error of its field."""
        cleaned = dict(super().clean() or {})
        if cleaned.get("rule") and not cleaned.get("window_tokens") and "window_tokens" not in self.errors:
            self.add_error("window_tokens", "Enter the number of tokens per window.")
        if cleaned.get("window_tokens") and not cleaned.get("rule") and "rule" not in self.errors:
            self.add_error("rule", "Choose a rule, or leave the tokens per window empty.")
        for role in ROLES:
            other = cleaned.get(f"endpoint_{role.key}")
            elsewhere = other and other != cleaned.get("endpoint") and not other.startswith("embedded:")
            if elsewhere and not cleaned.get(f"model_{role.key}"):
                self.add_error(f"model_{role.key}", "Enter its model at that endpoint.")
        if self.errors:
            return cleaned
        try:
            self.choice = spec_from_json(_recipe(cleaned))
        except FieldProblem as problem:
            self.add_error(_field_of(problem.field), problem.message)
        return cleaned

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's error at its field."""
        self.add_error(_field_of(problem.field), problem.message)

    @property
    def roles(self) -> Iterator[RoleFields]:
        """Yield the rows of the table of roles."""
        for role in ROLES:
            yield RoleFields(
                role.name,
                engines_text(role),
                self[f"endpoint_{role.key}"],
                self[f"model_{role.key}"],
                self[f"temperature_{role.key}"],
                self[f"effort_{role.key}"],
            )

    @property
    def offered(self) -> list[str]:
        """Return the models that connected endpoints offer."""
        return offered_models()

    @property
    def basic_fields(self) -> list[forms.BoundField]:
        """Return the fields that every profile needs."""
        return [self[name] for name in self.basic]

    @property
    def shape_fields(self) -> list[forms.BoundField]:
        """Return the fields for the layout of prompts."""
        return [self[name] for name in self.shape]

    @property
    def long_fields(self) -> list[forms.BoundField]:
        """Return the fields for chats beyond the model's context."""
        return [self[name] for name in self.long_chats]

    @property
    def more_open(self) -> bool:
        """Return whether a collapsed section has an error or a value other than the default."""
        folded = [name for name in self.fields if name not in self.basic]
        if self.is_bound:
            return any(name in self.errors for name in folded)
        return any(self.initial.get(name) not in (None, "", BLANK.get(name)) for name in folded)


def _initial(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe as the form's values."""
    plain = {name: value for name, value in recipe.items() if not isinstance(value, Mapping)}
    by_role = {
        f"{field}_{role}": value for name, field in _BY_ROLE.items() for role, value in recipe[name].items()
    }
    windows = recipe["windows"] or {"rule": "", "tokens": None, "overlap": 4}
    return (
        plain
        | by_role
        | {
            "rule": windows["rule"],
            "window_tokens": windows["tokens"],
            "overlap": windows["overlap"],
        }
    )


BLANK = _initial(DEFAULTS)


def _recipe(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form's values as a recipe."""
    names = ("engine", "samples", "knowledge", "endpoint", "model", "formatter", "grouping", "passage_tokens")
    recipe = {
        name: cleaned[name]
        for name in (*names, "embedding_model", "layout", "role_in", "logprobs", "ablation")
    }
    recipe["auto_debates"] = cleaned["auto_debates"] or DEFAULTS["auto_debates"]
    for name, field in _BY_ROLE.items():
        values = {role.key: cleaned.get(f"{field}_{role.key}") for role in ROLES}
        recipe[name] = {role: value for role, value in values.items() if value not in (None, "")}
    if cleaned["rule"]:
        overlap = 4 if cleaned["overlap"] is None else cleaned["overlap"]
        recipe["windows"] = {"tokens": cleaned["window_tokens"], "overlap": overlap, "rule": cleaned["rule"]}
    return recipe


def _field_of(setting: str) -> str | None:
    """Return the form's field for a recipe's setting; None if there is no such field."""
    known = {"windows.tokens": "window_tokens", "windows.overlap": "overlap", "windows.rule": "rule"}
    plural, _, role = setting.partition(".")
    singular = _BY_ROLE.get(plural)
    if singular and role:
        return f"{singular}_{role}"
    name = known.get(setting, setting)
    return name if name in ProfileForm.base_fields else None
