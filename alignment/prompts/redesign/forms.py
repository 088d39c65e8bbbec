"""Forms of redesigns: the new questions, and the word with which they are carried out."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from django import forms
from django.http import QueryDict

from common.problems import FieldProblem
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Tier
from labeling.rubric.core.redesign import MOST, REASON_LIMIT, SIZES, Kind, Redesign, successor_of
from labeling.rubric.core.rubric import CRITERION_KEY, CRITERION_KEY_LIMIT

LONGEST_QUESTION = 2_000
LONGEST_DEFINITION = 10_000
PREFIX = "into"
ANSWERS = [("True", "True"), ("False", "False")]


def _text(label: str, rows: int, limit: int, help_text: str = "") -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=limit,
        strip=False,
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": rows}),
    )


class QuestionForm(forms.Form):
    """A criterion to make."""

    question = _text("Question", 2, LONGEST_QUESTION, "One that is answered True or False of a chat.")
    definition = _text("Definition", 4, LONGEST_DEFINITION, "When the answer is True.")
    key = forms.RegexField(
        rf"^{CRITERION_KEY.pattern}\Z",
        label="Key",
        max_length=CRITERION_KEY_LIMIT,
        help_text="Lower-case letters, digits and _, letter first. It stays for good.",
        error_messages={"invalid": "Lower-case letters, digits and _ only, letter first."},
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
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
        self.empty_permitted = False  # each one shown is asked for
        self._choose("dimension", list(dimensions.items()))
        self._choose("carries", [(row.key, row.name) for row in olds])

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        cast(forms.ChoiceField, self.fields[name]).choices = choices

    def clean(self) -> dict[str, Any]:
        """Browsers send line ends as CR LF; stored texts have LF."""
        given = dict(super().clean() or {})
        for name in ("question", "definition"):
            if not (text := given.get(name, "x").replace("\r\n", "\n")).strip():
                self.add_error(name, "This field is required.")
            given[name] = text
        return given

    @property
    def asked(self) -> dict[str, Any]:
        """As a rubric file would say it."""
        return {**self.cleaned_data, "passes_when": self.cleaned_data["passes_when"] == "True"}


class WordForm(forms.Form):
    """Why it is done; where labels carry over, that the lead has compared the questions."""

    same_answers = forms.BooleanField(
        label="I have compared the questions: True and False mean the same in both",
        error_messages={"required": "Labels carry over only where that is so. Else carry none."},
    )
    reason = forms.CharField(
        max_length=REASON_LIMIT,
        label="Reason",
        help_text="Kept with the criteria for good.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(self, *args: Any, carries: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        if not carries:
            del self.fields["same_answers"]

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's refusal at its field."""
        self.add_error(problem.field if problem.field in self.fields else None, problem.message)


class Questions:
    """The new questions of one redesign: as the old ones suggest them, or as they were sent."""

    def __init__(
        self, kind: Kind, olds: Sequence[Criterion], newest: CriterionVersion, data: QueryDict | None = None
    ) -> None:
        self.kind, self.olds = kind, tuple(olds)
        self._dimensions = dict(Dimension.objects.values_list("key", "name"))
        self._start = _start(kind, olds[0], newest)
        self.sizes = SIZES[kind][1]
        initial = [self._start] * self.least
        self.formset = self._formset(data=data) if data else self._formset(initial=initial)

    @property
    def least(self) -> int:
        """How many there must be."""
        return self.sizes[0]

    @property
    def varies(self) -> bool:
        """Whether there may be more or fewer of them."""
        return len(self.sizes) > 1

    def resized(self, by: int) -> None:
        """One more or one less, with what was typed so far and nothing refused yet."""
        typed = [_typed(form) for form in self.formset.forms]
        number = min(max(len(typed) + by, self.least), self.sizes[-1])
        more = [self._start] * max(0, number - len(typed))
        self.formset = self._formset(initial=[*typed[:number], *more])

    def is_valid(self) -> bool:
        """Whether all can be read."""
        return bool(self.formset.is_valid())

    def redesign(self, *, same_answers: bool) -> Redesign:
        """What they amount to. Raises FieldProblem."""
        into = tuple(
            successor_of(form.asked, n, self._dimensions) for n, form in enumerate(self.formset.forms)
        )
        return Redesign(self.kind, tuple(row.key for row in self.olds), into, same_answers=same_answers)

    def refuse(self, problem: FieldProblem) -> bool:
        """Show a refusal at its field; False where it is about none of the questions."""
        found = re.fullmatch(rf"{PREFIX}\[(\d+)\]\.(\w+)", problem.field)
        if found is None:
            return False
        form = self.formset.forms[int(found[1])]
        form.add_error(found[2] if found[2] in form.fields else None, problem.message)
        return True

    @property
    def refused(self) -> int:
        """How many fields need a change."""
        return sum(map(len, self.formset.errors)) if self.formset.is_bound else 0

    def _formset(self, **given: Any) -> Any:
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
        return kind(prefix=PREFIX, form_kwargs=more, **given)


def _start(kind: Kind, old: Criterion, newest: CriterionVersion) -> dict[str, Any]:
    start = {
        "dimension": old.dimension.key,
        "tier": old.tier,
        "critical": old.critical,
        "allow_na": newest.allow_na,
        "passes_when": str(newest.passes_when),
    }
    asked = {"question": newest.question, "definition": newest.definition}
    return start | (asked if kind == "replace" else {})


def _typed(form: forms.Form) -> dict[str, Any]:
    return {
        name: field.widget.value_from_datadict(form.data, form.files, form.add_prefix(name))
        for name, field in form.fields.items()
    }
