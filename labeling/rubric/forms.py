"""Forms for guidelines and criterion texts."""

from typing import Any

from django import forms

from common.problems import FieldProblem

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
    reason = forms.CharField(
        max_length=500, label="Reason", help_text="Saved with the version. Raters do not see it."
    )

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's error at its field."""
        self.add_error(problem.field if problem.field in self.fields else None, problem.message)

    def rebase(self, number: int) -> None:
        """Base the next save on this version, whose text is now shown."""
        self.data = {name: self.data[name] for name in self.data} | {"base": str(number)}

    def clean(self) -> dict[str, Any]:
        """Replace the browser's CR LF by LF."""
        data = dict(super().clean() or {})
        return {
            name: value.replace("\r\n", "\n") if isinstance(value, str) else value
            for name, value in data.items()
        }


class GuidelineForm(VersionForm):
    """A rubric's guideline."""

    text = _text("Guideline", 22, needed=True, help_text="Markdown.")
    field_order = ("text", "reason")


class CriterionTextForm(VersionForm):
    """The texts of a criterion for raters."""

    question = _text("Question", 2, limit=2_000, needed=True)
    definition = _text("Definition", 5, limit=10_000, needed=True, help_text="When the answer is True.")
    guideline = _text("Guideline", 10, help_text="Markdown. Raters open it with the key g.")
    true_example = _text("Example of True", 3, limit=LONGEST_EXAMPLE)
    false_example = _text("Example of False", 3, limit=LONGEST_EXAMPLE)
    field_order = ("question", "definition", "guideline", "true_example", "false_example", "reason")
