"""Forms for guidelines and criterion texts."""

from typing import Any, cast

from django import forms

from common.problems import FieldProblem
from labeling.rubric.core.meaning import Change
from labeling.rubric.queries.label_counts import LabelCount

LONGEST_TEXT = 50_000  # characters; a longer one would not be rendered as Markdown
LONGEST_EXAMPLE = 2_000


def _text(
    label: str, rows: int, *, limit: int = LONGEST_TEXT, needed: bool = False, help_text: str = ""
) -> Any:
    """Return a text field that keeps surrounding spaces."""
    return forms.CharField(
        label=label,
        max_length=limit,
        required=needed,
        strip=False,
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": rows}),
    )


class VersionForm(forms.Form):
    """Fields of every new version; `base` is the number of the version that was edited."""

    base = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    meaning = forms.ChoiceField(
        required=False,
        choices=[("wording", "Wording only"), ("new", "New meaning")],
        widget=forms.RadioSelect,
        label="What does the change do to the labels?",
    )
    reason = forms.CharField(
        max_length=500, label="Reason", help_text="Saved with the version. Raters do not see it."
    )

    texts: tuple[str, ...]

    def __init__(self, *args: Any, at_stake: LabelCount, **more: Any) -> None:
        super().__init__(*args, **more)
        self.at_stake = at_stake

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's error at its field."""
        self.add_error(problem.field if problem.field in self.fields else None, problem.message)

    def rebase(self, number: int) -> None:
        """Base the next save on this version, whose text is now shown."""
        self.data = {name: self.data[name] for name in self.data} | {"base": str(number)}

    def clean(self) -> dict[str, Any]:
        """Replace the browser's CR LF by LF."""
        data = {
            name: value.replace("\r\n", "\n") if isinstance(value, str) else value
            for name, value in dict(super().clean() or {}).items()
        }
        if self.at_stake.labels and not data.get("meaning") and self._changes(data):
            self.add_error("meaning", "Say whether the labels go on counting.")
        return data

    def _changes(self, data: dict[str, Any]) -> bool:
        return any(name in data and data[name] != self.initial[name] for name in self.texts)

    @property
    def change(self) -> Change:
        """What the author says of the change; "" where no label is at stake."""
        return cast(Change, self.cleaned_data["meaning"]) if self.at_stake.labels else ""


class GuidelineForm(VersionForm):
    """A rubric's guideline."""

    text = _text("Guideline", 22, needed=True, help_text="Markdown.")
    texts = ("text",)
    field_order = ("text", "meaning", "reason")


class CriterionTextForm(VersionForm):
    """The texts of a criterion for raters."""

    question = _text("Question", 2, limit=2_000, needed=True)
    definition = _text("Definition", 5, limit=10_000, needed=True, help_text="When the answer is True.")
    guideline = _text("Guideline", 10, help_text="Markdown. Raters open it with the key g.")
    true_example = _text("Example of True", 3, limit=LONGEST_EXAMPLE)
    false_example = _text("Example of False", 3, limit=LONGEST_EXAMPLE)
    texts = ("question", "definition", "guideline", "true_example", "false_example")
    field_order = (*texts, "meaning", "reason")
