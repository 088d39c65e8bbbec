"""Form of the rules for chats that come in."""

import re
from typing import Any, cast

from django import forms

from common.guarded_json import guarded_loads
from common.problems import FieldProblem
from labeling.ingest.names import names_offered
from labeling.ingest.queries import rules_text
from labeling.models.ingest import IngestSettings

LABELS = {"email": "E-mail addresses", "phone": "Phone numbers", "card": "Payment cards", "iban": "IBANs"}
NAMED_LABELS = {"name": "Names of people", "place": "Addresses and places"}
KIND_LABELS = {**LABELS, **NAMED_LABELS}
MAX_RULES_TEXT = 1_000_000
_RULE = re.compile(r"rules\[(\d+)\]\.?(.*)")


class IncomingForm(forms.Form):
    """Redaction, topics and retention; each help text names the effect on chats that come in."""

    redact = forms.MultipleChoiceField(
        choices=list(LABELS.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Redact in new chats",
    )
    regions = forms.CharField(
        required=False,
        max_length=200,
        label="Countries of phone numbers",
        help_text="Codes such as GB, DE. Numbers of these countries are also found without “+”.",
    )
    retention_days = forms.IntegerField(
        required=False,
        label="Keep texts for (days)",
        help_text="Older chats lose their text in every copy; figures stay. Chats of curated, gold and "
        "calibration sets keep theirs. Leave empty to keep all texts.",
    )
    topic_rules = forms.CharField(
        required=False,
        max_length=MAX_RULES_TEXT,
        label="Topic rules",
        help_text="A JSON list. The first rule that fits gives a topic to a chat that comes without one.",
        widget=forms.Textarea(attrs={"rows": 10, "class": "input mono", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if names_offered():
            self.redacts.choices = list(KIND_LABELS.items())

    @property
    def redacts(self) -> forms.MultipleChoiceField:
        """The field of kinds."""
        return cast(forms.MultipleChoiceField, self.fields["redact"])

    @property
    def finds_names(self) -> bool:
        """Whether names can be chosen."""
        return names_offered()

    @classmethod
    def of(cls, row: IngestSettings) -> "IncomingForm":
        """Return the form with the rules in force."""
        return cls(
            initial={
                "redact": row.redact,
                "regions": ", ".join(row.regions),
                "retention_days": row.retention_days,
                "topic_rules": rules_text(row.topic_rules),
            }
        )

    def clean_regions(self) -> list[str]:
        """Return the codes."""
        return str(self.cleaned_data["regions"]).replace(",", " ").split()

    def clean_topic_rules(self) -> list[Any]:
        """Return the rules as JSON."""
        text = str(self.cleaned_data["topic_rules"]).strip()
        if not text:
            return []
        try:
            value = guarded_loads(text)
        except FieldProblem as problem:
            line = f"Line {problem.line}: " if problem.line else ""
            raise forms.ValidationError(f"{line}{problem}.") from None
        if not isinstance(value, list):
            raise forms.ValidationError("Must be a list of rules, such as [{…}, {…}].")
        return value

    def add_problem(self, problem: FieldProblem) -> None:
        """Show a problem at its field."""
        if rule := _RULE.match(problem.field):
            field = f", {rule[2]}" if rule[2] else ""
            self.add_error("topic_rules", f"Rule {int(rule[1]) + 1}{field}: {problem.message}.")
            return
        name = "topic_rules" if problem.field == "rules" else problem.field
        message = f"{problem.message}."
        self.add_error(name if name in self.fields else None, message[:1].upper() + message[1:])
