"""Forms of the labelling pages."""

from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils import timezone

from labeling.core.problems import FieldProblem
from labeling.models.chats import ChatSet
from labeling.models.labels import LabelingJob
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from labeling.selectors.sets import labellers

if TYPE_CHECKING:
    MultipleChoice = forms.ModelMultipleChoiceField[Any]
    SingleChoice = forms.ModelChoiceField[Any]
else:
    MultipleChoice = forms.ModelMultipleChoiceField  # NB: not subscriptable at run time
    SingleChoice = forms.ModelChoiceField


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


class GroupChoice(SingleChoice):
    """Groups of accounts."""

    def label_from_instance(self, obj: Any) -> str:
        """The role's name for the group of a role."""
        name = cast(Group, obj).name
        return f"Everybody who may label ({name})" if name == Role.RATER else name


class JobForm(forms.Form):
    """Open a labelling job for a chat set; `asked` is what the service takes, raters as accounts."""

    name = forms.CharField(max_length=120, label="Name", help_text="What raters read in their queue.")
    due_on = forms.DateField(
        required=False,
        label="Due",
        help_text="The last day. Nothing closes by itself.",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=20,
        label="Labels a chat",
        help_text="How many raters answer the same chat, each without seeing the others.",
    )
    overlap_percent = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=100,
        label="for so many % of the chats",
        help_text="Empty: for all. The other chats get one label.",
    )
    raters = RaterChoice(
        required=False, queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple, label="Raters"
    )
    group = GroupChoice(
        required=False,
        queryset=Group.objects.none(),
        label="and anybody of the group",
        empty_label="no group",
        help_text="Whoever belongs to it on the day may label, also who joins later.",
    )
    order = forms.ChoiceField(
        choices=[(LabelingJob.Order.TOPIC, "topics in turn"), (LabelingJob.Order.RANDOM, "random")],
        initial=LabelingJob.Order.TOPIC,
        label="Order of the chats",
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2_147_483_647,
        initial=0,
        label="Seed",
        help_text="Draws order, share and places of gold chats; the same seed draws the same.",
    )
    calibration_set = SingleChoice(
        required=False,
        queryset=ChatSet.objects.none(),
        label="Calibration round",
        empty_label="no round",
        help_text="Every rater labels this set first; the job waits until you start it.",
    )
    gold_set = SingleChoice(
        required=False,
        queryset=ChatSet.objects.none(),
        label="Gold chats from",
        empty_label="no gold chats",
        help_text="Chats with adjudicated answers, mixed in unseen.",
    )
    gold_percent = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=50,
        label="Gold, % of a rater’s chats",
    )
    criteria = CriterionChoice(
        queryset=Criterion.objects.none(), widget=forms.CheckboxSelectMultiple, label="Criteria"
    )
    # Where the service's words for a field differ from the form's.
    FIELDS = {"overlap_share": "overlap_percent", "gold_rate": "gold_percent", "due_at": "due_on"}

    def __init__(self, *args: Any, chat_set: ChatSet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        active = chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)
        self._choose("criteria", active)
        self.fields["criteria"].initial = active
        self._choose("raters", labellers())
        self._choose("group", Group.objects.filter(user__in=labellers()).distinct().order_by("name"))
        others = chat_set.rubric.chat_sets.exclude(pk=chat_set.pk).order_by("name")
        self._choose("gold_set", others.filter(kind=ChatSet.Kind.GOLD))
        self._choose("calibration_set", others.filter(kind=ChatSet.Kind.CALIBRATION))
        self.fields["overlap"].initial = min(2, max(1, labellers().count()))
        if chat_set.kind == ChatSet.Kind.CALIBRATION:
            self.fields["overlap"].help_text = "Of a calibration set every rater labels every chat."

    def _choose(self, name: str, rows: QuerySet[Any]) -> None:
        cast(SingleChoice, self.fields[name]).queryset = rows

    @property
    def more_open(self) -> bool:
        """Whether something under "More" needs a look."""
        return any(name in self.errors for name in ("order", "seed", "criteria"))

    @property
    def asked(self) -> dict[str, Any]:
        """The service's arguments; raters are accounts still."""
        given = self.cleaned_data
        share, gold = given.get("overlap_percent"), given.get("gold_percent")
        names = ("name", "overlap", "raters", "group", "order", "criteria", "gold_set", "calibration_set")
        return {name: given[name] for name in names} | {
            "seed": given.get("seed") or 0,
            "overlap_share": share / 100 if share and share < 100 else None,
            "gold_rate": (gold or 0) / 100,
            "due_at": _end_of(given["due_on"]) if given.get("due_on") else None,
        }

    def refuse(self, error: ValidationError) -> None:
        """Show the service's refusal at its field."""
        if not hasattr(error, "error_dict"):
            self.add_error(None, error)
            return
        for field, messages in error.message_dict.items():
            here = self.FIELDS.get(field, field)
            self.add_error(here if here in self.fields else None, messages)


def _end_of(day: date) -> datetime:
    """The last second of a day here."""
    return timezone.make_aware(datetime.combine(day, time(23, 59, 59)))


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
