"""Form of how failing chats are compared."""

from typing import Any

from django import forms

from alignment.models.issues import IssueSettings
from common.problems import FieldProblem
from evaluation.gateway.current import endpoint_choices

LEAST_BUDGET = 0.01


class GroupingForm(forms.Form):
    """Which embedding model takes part, and what it may cost."""

    embedding_model = forms.CharField(
        required=False,
        max_length=200,
        label="Embedding model",
        help_text="Groups texts in different languages, too. Empty: words alone.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
    )
    endpoint = forms.ChoiceField(required=False, label="Endpoint")
    budget_usd = forms.DecimalField(
        required=False,
        min_value=LEAST_BUDGET,
        max_digits=12,
        decimal_places=4,
        label="Budget for a week’s chats, US dollars",
        help_text="Above it, words alone decide. Empty: no limit.",
    )

    def __init__(self, data: Any = None, *, row: IssueSettings) -> None:
        names = ("embedding_model", "endpoint", "budget_usd")
        super().__init__(data, initial={name: getattr(row, name) for name in names})
        own, choices = endpoint_choices([row.endpoint])
        field = self.fields["endpoint"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101
        field.choices = [("", own), *((key, name) for key, name in choices if name != own)]

    def refuse(self, problem: FieldProblem) -> None:
        """Show a problem at its field."""
        text = problem.message.rstrip(".")
        self.add_error(problem.field if problem.field in self.fields else None, text[:1].upper() + text[1:])
