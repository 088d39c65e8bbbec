"""The form of a judge profile: the whole recipe, what most people need first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from django import forms

from common.problems import FieldProblem
from evaluation.core.types import Engine
from evaluation.engines.core.roles import ROLES, JudgeRole
from evaluation.judges.core.spec import LARGEST_NUMBER, MOST_SAMPLES, JudgeChoice, choice_json, choice_read
from evaluation.judges.queries.recipes import (
    ABLATIONS,
    ENGINES,
    GROUPINGS,
    KNOWLEDGE,
    LAYOUTS,
    ROLES_IN,
    RULES,
)

EFFORTS = {"": "as the model does", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}
LAYOUT_CHOICES = {"auto": "by model", **LAYOUTS}
DEFAULTS = choice_json(JudgeChoice("direct"))


@dataclass(frozen=True, slots=True)
class RoleFields:
    """One line of the table of roles."""

    name: str
    engines: str
    model: forms.BoundField
    temperature: forms.BoundField
    effort: forms.BoundField

    @property
    def fields(self) -> tuple[forms.BoundField, ...]:
        """The line's three fields."""
        return self.model, self.temperature, self.effort


def engines_text(role: JudgeRole) -> str:
    """Return the engines that ask a role, in words."""
    return "every engine" if role.engines == get_args(Engine) else ", ".join(role.engines)


class ProfileForm(forms.Form):
    """A named recipe; `choice` is what it amounts to once it is valid."""

    name = forms.CharField(max_length=120, label="Name", help_text="What runs and regression tests call it.")
    engine = forms.ChoiceField(choices=list(ENGINES.items()), label="Engine")
    samples = forms.IntegerField(
        min_value=1,
        max_value=MOST_SAMPLES,
        label="Samples",
        help_text="Answers to each question; the majority decides. More than one shows its noise.",
    )
    knowledge = forms.ChoiceField(choices=list(KNOWLEDGE.items()), label="Knowledge")
    model = forms.CharField(
        required=False,
        max_length=200,
        label="Model",
        help_text="Empty: LACE_REASONING_MODEL of the settings.",
    )
    formatter = forms.CharField(
        required=False, max_length=200, label="Formatter model", help_text="Empty: LACE_FORMATTER_MODEL."
    )

    grouping = forms.ChoiceField(choices=list(GROUPINGS.items()), label="Criteria in a call")
    passage_tokens = forms.IntegerField(
        min_value=1,
        max_value=LARGEST_NUMBER,
        label="Tokens of passages a call",
        help_text="With knowledge retrieved.",
    )
    layout = forms.ChoiceField(choices=list(LAYOUT_CHOICES.items()), label="Order of a prompt")
    role_in = forms.ChoiceField(choices=list(ROLES_IN.items()), label="A role's duty")
    logprobs = forms.BooleanField(
        required=False,
        label="Ask for token probabilities",
        help_text="The probability of True is kept where the endpoint tells it.",
    )

    rule = forms.ChoiceField(
        required=False,
        choices=[("", "no verdict"), *RULES.items()],
        label="When a chat is too long",
        help_text="With a rule, a chat that is too long is judged in overlapping parts.",
    )
    window_tokens = forms.IntegerField(
        required=False, min_value=1, max_value=LARGEST_NUMBER, label="Tokens of a part"
    )
    overlap = forms.IntegerField(required=False, min_value=0, max_value=1000, label="Turns shared by parts")
    ablation = forms.ChoiceField(
        required=False,
        choices=[("", "none"), *ABLATIONS.items()],
        label="Trial of a debate",
        help_text="Changes a debate to measure what it owes to its briefs.",
    )

    basic = ("name", "engine", "samples", "knowledge", "model", "formatter")
    shape = ("grouping", "passage_tokens", "layout", "role_in", "logprobs")
    long_chats = ("rule", "window_tokens", "overlap")
    trial = ("ablation",)

    choice: JudgeChoice

    def __init__(self, *args: Any, name: str = "", choice: JudgeChoice | None = None, **kwargs: Any) -> None:
        recipe = choice_json(choice) if choice else DEFAULTS
        super().__init__(*args, **kwargs)
        self.initial = {"name": name, **_initial(recipe)}
        for role in ROLES:
            self.fields[f"model_{role.key}"] = forms.CharField(
                required=False, max_length=200, label=f"Model of {role.name}"
            )
            self.fields[f"temperature_{role.key}"] = forms.FloatField(
                required=False, min_value=0, max_value=2, label=f"Temperature of {role.name}"
            )
            self.fields[f"effort_{role.key}"] = forms.ChoiceField(
                required=False, choices=list(EFFORTS.items()), label=f"Effort of {role.name}"
            )

    def clean(self) -> dict[str, Any]:
        """Read the recipe; a setting that cannot be becomes the error of its field."""
        cleaned = dict(super().clean() or {})
        if cleaned.get("rule") and not cleaned.get("window_tokens") and "window_tokens" not in self.errors:
            self.add_error("window_tokens", "Enter the number of tokens per part.")
        if cleaned.get("window_tokens") and not cleaned.get("rule") and "rule" not in self.errors:
            self.add_error("rule", "Choose a rule, or leave the tokens per part empty.")
        if self.errors:
            return cleaned
        try:
            self.choice = choice_read(_recipe(cleaned))
        except FieldProblem as problem:
            self.add_error(_field_of(problem.field), problem.message)
        return cleaned

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's refusal at its field."""
        self.add_error(_field_of(problem.field), problem.message)

    @property
    def roles(self) -> Iterator[RoleFields]:
        """The table of roles."""
        for role in ROLES:
            yield RoleFields(
                role.name,
                engines_text(role),
                self[f"model_{role.key}"],
                self[f"temperature_{role.key}"],
                self[f"effort_{role.key}"],
            )

    @property
    def basic_fields(self) -> list[forms.BoundField]:
        """What every profile needs."""
        return [self[name] for name in self.basic]

    @property
    def shape_fields(self) -> list[forms.BoundField]:
        """How prompts are laid out."""
        return [self[name] for name in self.shape]

    @property
    def long_fields(self) -> list[forms.BoundField]:
        """What becomes of chats over the context."""
        return [self[name] for name in self.long_chats]

    @property
    def more_open(self) -> bool:
        """Whether a folded part holds an error, or something that is not the default."""
        folded = [name for name in self.fields if name not in self.basic]
        if self.is_bound:
            return any(name in self.errors for name in folded)
        return any(self.initial.get(name) not in (None, "", BLANK.get(name)) for name in folded)


def _initial(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as the form's values."""
    plain = {name: value for name, value in recipe.items() if not isinstance(value, Mapping)}
    by_role = {
        f"{field}_{role}": value
        for name, field in (("models", "model"), ("temperatures", "temperature"), ("efforts", "effort"))
        for role, value in recipe[name].items()
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
    """The form's values as a recipe."""
    names = ("engine", "samples", "knowledge", "model", "formatter", "grouping", "passage_tokens")
    recipe = {name: cleaned[name] for name in (*names, "layout", "role_in", "logprobs", "ablation")}
    for name, field in (("models", "model"), ("temperatures", "temperature"), ("efforts", "effort")):
        values = {role.key: cleaned.get(f"{field}_{role.key}") for role in ROLES}
        recipe[name] = {role: value for role, value in values.items() if value not in (None, "")}
    if cleaned["rule"]:
        overlap = 4 if cleaned["overlap"] is None else cleaned["overlap"]
        recipe["windows"] = {"tokens": cleaned["window_tokens"], "overlap": overlap, "rule": cleaned["rule"]}
    return recipe


def _field_of(setting: str) -> str | None:
    """The form's field for a recipe's setting; None for what is no field of its own."""
    known = {"windows.tokens": "window_tokens", "windows.overlap": "overlap", "windows.rule": "rule"}
    plural, _, role = setting.partition(".")
    singular = {"models": "model", "temperatures": "temperature", "efforts": "effort"}.get(plural)
    if singular and role:
        return f"{singular}_{role}"
    name = known.get(setting, setting)
    return name if name in ProfileForm.base_fields else None
