"""Forms of what raters read: guidelines and criterion texts."""

from typing import Any

from django import forms

from common.problems import FieldProblem

LONGEST_TEXT = 50_000  # characters; a longer one would not be rendered as Markdown
LONGEST_EXAMPLE = 2_000


def _text(
    label: str, rows: int, *, limit: int = LONGEST_TEXT, needed: bool = False, help_text: str = ""
) -> Any:
    """A text as it was typed, spaces at its ends included."""
    return forms.CharField(
        label=label,
        max_length=limit,
        required=needed,
        strip=False,
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": rows}),
    )


class VersionForm(forms.Form):
    """What every new version of a text needs; `base` is the number of the version that it started from."""

    base = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    reason = forms.CharField(
        max_length=500, label="Reason", help_text="Kept with the version; raters do not read it."
    )

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's refusal at its field."""
        self.add_error(problem.field if problem.field in self.fields else None, problem.message)

    def rebase(self, number: int) -> None:
        """Let the next save start from this version: its text was shown."""
        self.data = {name: self.data[name] for name in self.data} | {"base": str(number)}

    def clean(self) -> dict[str, Any]:
        """Browsers send line ends as CR LF; stored texts have LF."""
        given = dict(super().clean() or {})
        return {
            name: value.replace("\r\n", "\n") if isinstance(value, str) else value
            for name, value in given.items()
        }


class GuidelineForm(VersionForm):
    """A rubric's guideline."""

    text = _text("Guideline", 22, needed=True, help_text="Markdown.")
    field_order = ("text", "reason")


class CriterionTextForm(VersionForm):
    """What a rater reads about a criterion."""

    question = _text("Question", 2, limit=2_000, needed=True)
    definition = _text("Definition", 5, limit=10_000, needed=True, help_text="When the answer is True.")
    guideline = _text("Guideline", 10, help_text="Markdown; opened with the key g.")
    true_example = _text("Example of True", 3, limit=LONGEST_EXAMPLE)
    false_example = _text("Example of False", 3, limit=LONGEST_EXAMPLE)
    field_order = ("question", "definition", "guideline", "true_example", "false_example", "reason")
