"""Forms of the labelling pages."""

from typing import TYPE_CHECKING, Any, cast

from django import forms

from labeling.core.problems import FieldProblem
from labeling.models.chats import ChatSet, Topic
from labeling.models.labels import LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion, Dimension
from labeling.selectors.adjudication import Filters, Kind
from labeling.selectors.sets import labellers
from labeling.services.adjudications import REASON_LIMIT

if TYPE_CHECKING:
    MultipleChoice = forms.ModelMultipleChoiceField[Any]
    OneChoice = forms.ModelChoiceField[Any]
else:
    MultipleChoice = forms.ModelMultipleChoiceField  # NB: not subscriptable at run time
    OneChoice = forms.ModelChoiceField


class RaterChoice(MultipleChoice):
    """Accounts that may label, shown under the name their labels bear."""

    def label_from_instance(self, obj: Any) -> str:
        """The rater's name, else the account's."""
        user = cast(User, obj)
        return str(getattr(user, "rater", None) or user.get_full_name() or user.get_username())


class CriterionChoice(MultipleChoice):
    """Criteria under their readable names."""

    def label_from_instance(self, obj: Any) -> str:
        """Words instead of the key."""
        return cast(Criterion, obj).name


class JobForm(forms.Form):
    """Open a labelling job for a chat set."""

    name = forms.CharField(max_length=120, label="Name", help_text="What raters read in their queue.")
    overlap = forms.IntegerField(
        min_value=1,
        max_value=20,
        label="Labels a chat",
        help_text="How many raters answer the same chat, each without seeing the others.",
    )
    raters = RaterChoice(queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple, label="Raters")
    criteria = CriterionChoice(
        queryset=Criterion.objects.none(), widget=forms.CheckboxSelectMultiple, label="Criteria"
    )

    def __init__(self, *args: Any, chat_set: ChatSet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        active = chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)
        asked = cast(CriterionChoice, self.fields["criteria"])
        asked.queryset = active
        asked.initial = active
        raters = cast(RaterChoice, self.fields["raters"])
        raters.queryset = labellers()
        self.fields["overlap"].initial = min(2, max(1, raters.queryset.count()))


# ---------- adjudication ----------


class NamedChoice(OneChoice):
    """Rows under their readable names."""

    def label_from_instance(self, obj: Any) -> str:
        """The name."""
        return str(obj.name)


class AdjudicationFilterForm(forms.Form):
    """What of the adjudication queue is listed; every field may be left out."""

    kind = forms.ChoiceField(choices=Kind.choices, required=False, label="Items")
    set = NamedChoice(ChatSet.objects.order_by("name"), required=False, empty_label="All", label="Chat set")
    job = NamedChoice(LabelingJob.objects.order_by("-pk"), required=False, empty_label="All", label="Job")
    criterion = NamedChoice(
        Criterion.objects.filter(state=Criterion.State.ACTIVE).order_by("dimension__position", "position"),
        required=False,
        empty_label="All",
        to_field_name="key",
        label="Criterion",
    )
    dimension = NamedChoice(
        Dimension.objects.order_by("position"),
        required=False,
        empty_label="All",
        to_field_name="key",
        label="Dimension",
    )
    topic = NamedChoice(
        Topic.objects.order_by("name"), required=False, empty_label="All", to_field_name="key", label="Topic"
    )

    def filters(self) -> Filters:
        """What was asked for; the form must be valid."""
        given = self.cleaned_data
        return Filters(
            kind=given["kind"] or Kind.DISPUTED,
            chat_set=given["set"],
            job=given["job"],
            criterion=given["criterion"],
            dimension=given["dimension"].key if given["dimension"] else "",
            topic=given["topic"].key if given["topic"] else "",
        )


class DecisionForm(forms.Form):
    """A lead's decision; `seen` is the decision they had before them."""

    value = forms.TypedChoiceField(
        choices=[("true", "True"), ("false", "False"), ("null", "Not applicable")],
        coerce=lambda text: {"true": True, "false": False}.get(text),
        empty_value="",
        error_messages={"required": "Choose an answer."},
    )
    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Say why: raters learn from the reason."}
    )
    seen = forms.IntegerField(required=False)

    def clean_reason(self) -> str:
        """Browsers send line ends as CR LF; stored texts have LF."""
        return str(self.cleaned_data["reason"]).replace("\r\n", "\n")


# ---------- texts for raters, settings ----------

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


class SettingsForm(forms.Form):
    """The workspace's rules of labelling, each with what it does to raters and to agreement."""

    evidence_on_false = forms.BooleanField(
        required=False,
        label="Evidence with every False",
        help_text="A rater can submit a chat when each False points to a turn or a passage of it. Takes "
        "longer; shows where a disagreement begins. Agreement is counted as before.",
    )
    comment_required = forms.BooleanField(
        required=False,
        label="A comment with every answer",
        help_text="A rater can submit a chat when each answer says why. Takes longer still; suits small "
        "sets and calibration rounds. Agreement is counted as before.",
    )
    reveal_after_submit = forms.BooleanField(
        required=False,
        label="Show the judge’s view after submitting",
        help_text="A rater may look at the verdicts on a chat that they submitted. What they change from "
        "then on is kept as a revision marked post-reveal and counts in no agreement.",
    )
