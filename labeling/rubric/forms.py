"""Forms for rubrics, criteria, guidelines and criterion texts."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from django import forms
from django.http import QueryDict

from common.jsonl import NAME_LIMIT
from common.problems import FieldProblem
from labeling.models.rubric import CriterionVersion, Tier
from labeling.rubric.core.meaning import Change
from labeling.rubric.core.rubric import (
    CRITERION_KEY,
    CRITERION_KEY_LIMIT,
    CriterionSettings,
    CriterionSpec,
)
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
        self._show("base", str(number))

    def _show(self, name: str, value: str) -> None:
        """Show another value in a hidden field of a form that was sent."""
        data = cast(QueryDict, self.data).copy()
        data[name] = value
        self.data = data

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


# ---------- the rubric editor ----------

TIERS = [
    (Tier.SIMPLE, "Simple: universal standards"),
    (Tier.CONTEXT, "Context: needs knowledge of the business"),
    (Tier.SUBJECTIVE, "Subjective: reported only, never blocks"),
]
ANSWERS = [("True", "True"), ("False", "False")]
BY_TIER, EVERY, LISTED = "tier", "all", "listed"
ARTICLES = {
    BY_TIER: "By tier: all for context, none otherwise",
    EVERY: "All articles, also later ones",
    LISTED: "Only those ticked",
}


class RubricForm(forms.Form):
    """Criteria of the default rubric, for a new rubric with its name, or for one that has its name."""

    name = forms.CharField(
        label="Name", max_length=NAME_LIMIT, help_text="For example: Support chat, web shop."
    )
    criteria = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, keys: Sequence[str], named: bool = True, **more: Any) -> None:
        super().__init__(*args, **more)
        field = cast(forms.MultipleChoiceField, self.fields["criteria"])
        field.choices = [(key, key) for key in keys]
        if not named:
            del self.fields["name"]
            field.required = True
            field.error_messages["required"] = "Tick at least one criterion."


class CriterionForm(forms.Form):
    """A new criterion."""

    question = _text(
        "Question",
        2,
        limit=2_000,
        needed=True,
        help_text="About one chat, answered True or False. Ask one thing.",
    )
    definition = _text(
        "Definition",
        6,
        limit=10_000,
        needed=True,
        help_text="When the answer is True, when False, and what decides a doubtful case.",
    )
    key = forms.RegexField(
        rf"^{CRITERION_KEY.pattern}\Z",
        label="Key",
        required=False,
        max_length=CRITERION_KEY_LIMIT,
        error_messages={"invalid": "Lower-case letters, digits and _ only, letter first."},
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    dimension = forms.ChoiceField(label="Dimension")
    tier = forms.ChoiceField(label="Tier", choices=TIERS, help_text="How hard it is for the judge.")
    passes_when = forms.ChoiceField(
        label="Passes when the answer is",
        choices=ANSWERS,
        help_text="The answer that is good for the chatbot.",
    )
    allow_na = forms.BooleanField(label="May be answered “not applicable”", required=False)
    critical = forms.BooleanField(label="Critical: failing it fails the whole chat", required=False)
    evidence_on_fail = forms.BooleanField(label="A failing answer needs evidence", required=False)
    articles = forms.ChoiceField(
        label="Knowledge articles", help_text="What the judge reads of your knowledge to answer."
    )
    knowledge = forms.MultipleChoiceField(
        label="Articles", required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(
        self,
        *args: Any,
        dimensions: Sequence[tuple[str, str]],
        articles: Sequence[tuple[str, str]],
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._choose("dimension", dimensions)
        self._choose("knowledge", articles)
        self._offer_articles(BY_TIER, LISTED)

    def _offer_articles(self, *kinds: str) -> None:
        self._choose("articles", [(kind, ARTICLES[kind]) for kind in kinds])

    def _choose(self, name: str, choices: Sequence[tuple[str, str]]) -> None:
        cast(forms.ChoiceField, self.fields[name]).choices = list(choices)

    def clean(self) -> dict[str, Any]:
        """Replace the browser's CR LF by LF, as stored texts have it."""
        data = dict(super().clean() or {})
        for name in ("question", "definition"):
            data[name] = str(data.get(name, "x")).replace("\r\n", "\n")
            if not data[name].strip():
                self.add_error(name, "This field is required.")
        return data

    def refuse(self, problem: FieldProblem) -> None:
        """Show a service's error at its field."""
        name = problem.field.partition("[")[0]
        self.add_error(name if name in self.fields else None, problem.message)

    @property
    def passes(self) -> bool:
        """The passing answer of a valid form."""
        return bool(self.cleaned_data["passes_when"] == "True")

    @property
    def spec(self) -> CriterionSpec:
        """The criterion of a valid form."""
        data = self.cleaned_data
        listed = tuple(data["knowledge"]) if data["articles"] == LISTED else ()
        return CriterionSpec(
            key=data["key"],
            dimension=data["dimension"],
            tier=data["tier"],
            question=data["question"],
            definition=data["definition"],
            passes_when=self.passes,
            allow_na=data["allow_na"],
            critical=data["critical"],
            knowledge=None if data["articles"] == BY_TIER else listed,
            evidence_on_fail=data["evidence_on_fail"],
        )


class CriterionEditForm(CriterionForm, VersionForm):
    """A criterion's question, definition and settings; `seen` is the digest of the settings that it shows."""

    seen = forms.CharField(widget=forms.HiddenInput)
    texts = ("question", "definition", "allow_na", "passes_when")

    def __init__(self, *args: Any, fixed: Mapping[str, str], **more: Any) -> None:
        """Disable the `fixed` fields, each with the reason why it cannot change."""
        super().__init__(*args, **more)
        self.fields["key"].required = True
        self._offer_articles(EVERY, LISTED)
        for name, why in fixed.items():
            self.fields[name].disabled, self.fields[name].help_text = True, why

    @property
    def settings(self) -> CriterionSettings:
        """The settings of a valid form."""
        data = self.cleaned_data
        every = data["articles"] == EVERY
        return CriterionSettings(
            key=data["key"],
            dimension=data["dimension"],
            tier=data["tier"],
            critical=data["critical"],
            evidence_on_fail=data["evidence_on_fail"],
            all_articles=every,
            knowledge=() if every else tuple(sorted(data["knowledge"])),
        )

    def see(self, settings: CriterionSettings) -> None:
        """Base the next save on these settings, which are now shown beside the user's own."""
        self._show("seen", settings.digest)

    @staticmethod
    def start(version: CriterionVersion, settings: CriterionSettings) -> dict[str, Any]:
        """Return what the form shows of a criterion as it is now."""
        return {
            "base": version.number,
            "seen": settings.digest,
            "question": version.question,
            "definition": version.definition,
            "passes_when": str(version.passes_when),
            "allow_na": version.allow_na,
            "key": settings.key,
            "dimension": settings.dimension,
            "tier": settings.tier,
            "critical": settings.critical,
            "evidence_on_fail": settings.evidence_on_fail,
            "articles": EVERY if settings.all_articles else LISTED,
            "knowledge": list(settings.knowledge),
        }
