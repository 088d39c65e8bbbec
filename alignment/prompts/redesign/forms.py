"""Forms of redesigns: the new questions, and the confirmation."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from django import forms
from django.http import QueryDict

from common.problems import FieldProblem
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Tier
from labeling.rubric.core.redesign import MOST, REASON_LIMIT, SIZES, Kind, Redesign, successor_of
from labeling.rubric.core.rubric import CRITERION_KEY, CRITERION_KEY_LIMIT
from labeling.rubric.forms import LONGEST_EXAMPLE, LONGEST_TEXT
from labeling.rubric.queries.versions import TEXTS

LONGEST_QUESTION = 2_000
LONGEST_DEFINITION = 10_000
PREFIX = "into"
ANSWERS = [("True", "True"), ("False", "False")]


def _text(label: str, rows: int, limit: int, help_text: str = "", *, needed: bool = True) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=limit,
        required=needed,
        strip=False,
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": rows}),
    )


class QuestionForm(forms.Form):
    """A new criterion."""

    question = _text("Question", 2, LONGEST_QUESTION, "A question about a chat, answered True or False.")
    definition = _text("Definition", 4, LONGEST_DEFINITION, "When the answer is True.")
    key = forms.RegexField(
        rf"^{CRITERION_KEY.pattern}\Z",
        label="Key",
        max_length=CRITERION_KEY_LIMIT,
        help_text="Lower-case letters, digits and _, letter first. It cannot be changed later.",
        error_messages={"invalid": "Lower-case letters, digits and _ only, letter first."},
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    guideline = _text("Guideline", 6, LONGEST_TEXT, "Markdown, for raters only.", needed=False)
    true_example = _text("Example of True", 2, LONGEST_EXAMPLE, needed=False)
    false_example = _text("Example of False", 2, LONGEST_EXAMPLE, needed=False)
    dimension = forms.ChoiceField(label="Dimension")
    tier = forms.ChoiceField(label="Tier", choices=Tier.choices)
    passes_when = forms.ChoiceField(label="Passes when", choices=ANSWERS)
    allow_na = forms.BooleanField(label="May be answered “not applicable”", required=False)
    critical = forms.BooleanField(label="Critical: failing it fails the chat", required=False)
    carries = forms.MultipleChoiceField(
        label="Carry labels over from", required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(
        self, *args: Any, olds: Sequence[Criterion], dimensions: Mapping[str, str], **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.empty_permitted = False  # every question shown is required
        self._choose("dimension", list(dimensions.items()))
        self._choose("carries", [(row.key, row.name) for row in olds])

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        cast(forms.ChoiceField, self.fields[name]).choices = choices

    def clean(self) -> dict[str, Any]:
        """Replace the browser's CR LF by LF, as stored texts have it."""
        data = dict(super().clean() or {})
        for name in TEXTS:
            data[name] = data.get(name, "x").replace("\r\n", "\n")
        for name in ("question", "definition"):
            if not data[name].strip():
                self.add_error(name, "This field is required.")
        return data

    @property
    def spec(self) -> dict[str, Any]:
        """The criterion in the form of a rubric file."""
        return {**self.cleaned_data, "passes_when": self.cleaned_data["passes_when"] == "True"}


class ConfirmForm(forms.Form):
    """The reason; if labels carry over, also that the lead has compared the questions."""

    same_answers = forms.BooleanField(
        label="I compared the questions: True and False mean the same in both",
        error_messages={"required": "Confirm this, or carry no labels over."},
    )
    reason = forms.CharField(
        max_length=REASON_LIMIT,
        label="Reason",
        help_text="Stored with the criteria.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(self, *args: Any, carries: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        if not carries:
            del self.fields["same_answers"]

    def refuse(self, problem: FieldProblem) -> None:
        """Show a problem from the service at its field."""
        self.add_error(problem.field if problem.field in self.fields else None, problem.message)


class Questions:
    """The new questions of one redesign, prefilled from the first of the old ones or as posted."""

    def __init__(
        self, kind: Kind, olds: Sequence[Criterion], newest: CriterionVersion, data: QueryDict | None = None
    ) -> None:
        self.kind, self.olds = kind, tuple(olds)
        self._dimensions = dict(Dimension.objects.values_list("key", "name"))
        self._start = _start(olds[0], newest)
        self.sizes = SIZES[kind][1]
        initial = [self._start] * self.least
        self.formset = self._formset(data=data) if data else self._formset(initial=initial)

    @property
    def least(self) -> int:
        """The minimum number of questions."""
        return self.sizes[0]

    @property
    def varies(self) -> bool:
        """Whether the number of questions can change."""
        return len(self.sizes) > 1

    def resized(self, by: int) -> None:
        """Add or remove questions and keep what was typed, without errors."""
        typed = [_typed(form) for form in self.formset.forms]
        number = min(max(len(typed) + by, self.least), self.sizes[-1])
        more = [self._start] * max(0, number - len(typed))
        self.formset = self._formset(initial=[*typed[:number], *more])

    def is_valid(self) -> bool:
        """Return whether all questions are valid."""
        return bool(self.formset.is_valid())

    def redesign(self, *, same_answers: bool) -> Redesign:
        """Return the redesign. Raises FieldProblem."""
        into = tuple(
            successor_of(form.spec, n, self._dimensions) for n, form in enumerate(self.formset.forms)
        )
        return Redesign(self.kind, tuple(row.key for row in self.olds), into, same_answers=same_answers)

    def refuse(self, problem: FieldProblem) -> bool:
        """Show a problem at its field; return False if it is about none of the questions."""
        match = re.fullmatch(rf"{PREFIX}\[(\d+)\]\.(\w+)", problem.field)
        if match is None:
            return False
        form = self.formset.forms[int(match[1])]
        form.add_error(match[2] if match[2] in form.fields else None, problem.message)
        return True

    @property
    def refused(self) -> int:
        """The number of fields with errors."""
        return sum(map(len, self.formset.errors)) if self.formset.is_bound else 0

    def _formset(self, **options: Any) -> Any:
        kind = forms.formset_factory(
            QuestionForm,
            extra=0,
            min_num=self.least,
            max_num=self.sizes[-1],
            absolute_max=MOST,
            validate_min=True,
            validate_max=True,
        )
        more = {"olds": self.olds, "dimensions": self._dimensions}
        return kind(prefix=PREFIX, form_kwargs=more, **options)


def _start(old: Criterion, newest: CriterionVersion) -> dict[str, Any]:
    start = {
        "dimension": old.dimension.key,
        "tier": old.tier,
        "critical": old.critical,
        "allow_na": newest.allow_na,
        "passes_when": str(newest.passes_when),
    }
    return start | {name: getattr(newest, name) for name in TEXTS}


def _typed(form: forms.Form) -> dict[str, Any]:
    return {
        name: field.widget.value_from_datadict(form.data, form.files, form.add_prefix(name))
        for name, field in form.fields.items()
    }
