"""Form of the topic prompt."""

from typing import Any

from django import forms

from alignment.models.topic_prompt import TopicPrompt
from alignment.topic_prompt.core import topics_of
from common.problems import FieldProblem
from evaluation.gateway.current import endpoint_choices
from evaluation.gateway.endpoints import SIMULATED
from evaluation.gateway.simulated import SIMULATED_MODEL
from labeling.models.people import Workspace

LEAST_BUDGET = 0.01
MAX_TEXT = 60_000


class TopicPromptForm(forms.Form):
    """Which model gives topics, which ones, and what it may spend."""

    active = forms.BooleanField(required=False, label="Give topics to chats that come without one")
    endpoint = forms.ChoiceField(required=False, label="Endpoint")
    model = forms.CharField(
        required=False,
        max_length=200,
        label="Model",
        help_text="A small, cheap one. Empty: a cheap model of the endpoint, or its first.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
    )
    budget_usd = forms.DecimalField(
        required=False,
        min_value=LEAST_BUDGET,
        max_digits=12,
        decimal_places=4,
        label="Budget a day, US dollars",
        help_text="No request leaves that could exceed it. Empty: no limit.",
    )
    topics = forms.CharField(
        required=False,
        max_length=MAX_TEXT,
        label="Topics",
        help_text="One a line, as “topic: what belongs to it”. Chats that fit none stay unknown.",
        widget=forms.Textarea(attrs={"rows": 12, "class": "input", "spellcheck": "false"}),
    )

    def __init__(self, data: Any = None, *, row: TopicPrompt) -> None:
        initial = {name: getattr(row, name) for name in ("active", "endpoint", "model", "budget_usd")}
        initial["topics"] = "\n".join(f"{one['key']}: {one['description']}" for one in row.topics)
        super().__init__(data, initial=initial)
        simulated = {SIMULATED: SIMULATED_MODEL} if Workspace.is_demo() else {}
        own, choices = endpoint_choices([row.endpoint], more=simulated)
        field = self.fields["endpoint"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101
        field.choices = [("", own), *((key, name) for key, name in choices if name != own)]

    def clean_topics(self) -> list[dict[str, str]]:
        """Return the topics as they are stored."""
        text = str(self.cleaned_data["topics"])
        if not text.strip():
            return []
        try:
            return [one.as_json() for one in topics_of(text)]
        except FieldProblem as problem:
            raise forms.ValidationError(_sentence(problem.message)) from None

    def refuse(self, problem: FieldProblem) -> None:
        """Show a problem at its field."""
        self.add_error(problem.field if problem.field in self.fields else None, _sentence(problem.message))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
