"""The form of a sample plan."""

from datetime import time
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib.auth.models import Group
from django.db.models import Count, QuerySet

from common.problems import FieldProblem
from evaluation.judges.queries.profiles import default_profile
from evaluation.models.judges import JudgeProfile
from evaluation.models.nightly import NightlyJudge
from evaluation.models.runs import Run
from evaluation.nightly.services import MOST_ANCHORS, JudgeChoice
from evaluation.runs.forms import LEAST_BUDGET, ProfileChoice
from labeling.models.chats import ChatSet
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion, Rubric
from labeling.models.sampling import SamplePlan
from labeling.sampling.queries import SampleSize, labelling_accounts, labelling_groups
from labeling.sampling.services import MOST_CHATS, MOST_OVERLAP, NAME_LIMIT, PlanSettings

if TYPE_CHECKING:
    MultipleChoice = forms.ModelMultipleChoiceField[Any]
    SingleChoice = forms.ModelChoiceField[Any]
else:
    MultipleChoice = forms.ModelMultipleChoiceField  # NB: not subscriptable at run time
    SingleChoice = forms.ModelChoiceField

RULES = {
    SamplePlan.Rule.PROPORTIONAL: "proportional to its chats",
    SamplePlan.Rule.SQRT: "by the square root of its chats",
    SamplePlan.Rule.EQUAL: "the same for each",
    SamplePlan.Rule.NEYMAN: "by its chats and how much verdicts vary (Neyman)",
}


class RaterChoice(MultipleChoice):
    """Accounts that may label, by rater name."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the rater's name, else the account's."""
        user = cast(User, obj)
        return str(getattr(user, "rater", None) or user.get_full_name() or user.get_username())


class GroupChoice(SingleChoice):
    """Groups of accounts."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the group's name; the group of all raters is marked."""
        name = cast(Group, obj).name
        return f"All raters ({name})" if name == Role.RATER else name


class CriterionChoice(MultipleChoice):
    """Criteria by name, with their rubric where there are several."""

    several = False

    def label_from_instance(self, obj: Any) -> str:
        """Return the criterion's name."""
        row = cast(Criterion, obj)
        return f"{row.rubric.name}: {row.name}" if self.several else row.name


class AnchorChoice(SingleChoice):
    """Chat sets with the number of their chats, and their rubric where there are several."""

    several = False

    def label_from_instance(self, obj: Any) -> str:
        """Return the set's name and size."""
        row = cast(ChatSet, obj)
        name = f"{row.rubric.name}: {row.name}" if self.several else row.name
        return f"{name} ({obj.size:,} chats)"


class PlanForm(forms.Form):
    """A plan and its judge; `settings` and `judge` are the services' arguments once the form is valid."""

    name = forms.CharField(
        max_length=NAME_LIMIT, label="Name", help_text="Part of the names of its chat sets and jobs."
    )
    rubric = SingleChoice(queryset=Rubric.objects.none(), label="Rubric", empty_label="Choose a rubric")
    starts_at = forms.TimeField(
        initial=time(2),
        label="Starts at",
        help_text="Samples the chats that arrived the day before.",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    chats = forms.IntegerField(min_value=1, max_value=MOST_CHATS, initial=500, label="Chats a night")
    rule = forms.ChoiceField(
        choices=list(RULES.items()), initial=SamplePlan.Rule.PROPORTIONAL, label="Chats of a topic"
    )
    minimum = forms.IntegerField(
        min_value=0, max_value=MOST_CHATS, initial=10, label="At least", help_text="Chats of each topic."
    )
    maximum = forms.IntegerField(
        required=False, min_value=1, max_value=MOST_CHATS, label="At most", help_text="Empty: no maximum."
    )
    profile = ProfileChoice(queryset=JudgeProfile.objects.none(), label="Judge profile", empty_label=None)
    budget_usd = forms.DecimalField(
        required=False,
        min_value=LEAST_BUDGET,
        max_digits=12,
        decimal_places=4,
        label="Budget a night, US dollars",
        help_text="The run pauses before it spends more. Empty: no limit.",
    )
    mode = forms.ChoiceField(choices=Run.Mode.choices, initial=Run.Mode.LIVE, label="Mode")
    anchor_set = AnchorChoice(
        required=False,
        queryset=ChatSet.objects.none(),
        label="Anchor chats",
        empty_label="none",
        help_text="A curated set. Its chats are never sampled and keep their texts.",
    )
    anchors = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_ANCHORS,
        label="Anchors a night",
        help_text="The first chats of the set. Part of the budget.",
    )
    audit_percent = forms.FloatField(
        required=False,
        min_value=0,
        max_value=100,
        initial=5,
        label="Random share (%)",
        help_text="Of the judged chats. Corrects the judge’s rates.",
    )
    oversample = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_CHATS,
        initial=0,
        label="Judged False",
        help_text="Further chats with a verdict of False.",
    )
    overlap = forms.IntegerField(min_value=1, max_value=MOST_OVERLAP, initial=1, label="Labels per chat")
    raters = RaterChoice(
        required=False, queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple, label="Raters"
    )
    group = GroupChoice(required=False, queryset=Group.objects.none(), label="Group", empty_label="no group")
    criteria = CriterionChoice(
        required=False,
        queryset=Criterion.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        label="Criteria for raters (all if none is selected)",
    )
    # Field of the service → field of the form.
    FIELDS = {"audit_share": "audit_percent"}
    # What the preview depends on.
    SIZE = ("chats", "rule", "minimum", "maximum", "audit_percent")

    def __init__(self, *args: Any, plan: SamplePlan | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **({"initial": _initial(plan)} if plan else {}) | kwargs)
        rubrics = Rubric.objects.order_by("name")
        self._choose("rubric", rubrics)
        if plan is None and len(few := rubrics[:2]) == 1:
            self.fields["rubric"].initial = few[0]
        self._choose("profile", JudgeProfile.objects.order_by("-is_default", "name"))
        if plan is None:
            self.fields["profile"].initial = default_profile()
        sets = ChatSet.objects.exclude(kind=ChatSet.Kind.SAMPLE).select_related("rubric")
        self._choose("anchor_set", sets.annotate(size=Count("members")).order_by("rubric__name", "name"))
        self._choose("raters", labelling_accounts())
        self._choose("group", labelling_groups())
        active = Criterion.objects.filter(state=Criterion.State.ACTIVE).select_related("rubric")
        self._choose("criteria", active.order_by("rubric__name", "dimension__position", "position"))
        several = rubrics.count() > 1
        cast(CriterionChoice, self.fields["criteria"]).several = several
        cast(AnchorChoice, self.fields["anchor_set"]).several = several

    def _choose(self, name: str, rows: QuerySet[Any]) -> None:
        cast(SingleChoice, self.fields[name]).queryset = rows

    @property
    def size(self) -> SampleSize | None:
        """Return the sample's size, of a form that may not be whole yet; None if a part of it is wrong."""
        data = self.cleaned_data
        if any(name in self.errors for name in self.SIZE):
            return None
        if data["maximum"] is not None and data["maximum"] < data["minimum"]:
            return None
        return SampleSize(data["chats"], data["rule"], data["minimum"], data["maximum"])

    @property
    def audit_share(self) -> float:
        """Return the random share, 0 to 1."""
        return (self.cleaned_data.get("audit_percent") or 0) / 100

    @property
    def settings(self) -> PlanSettings:
        """Return the plan's settings."""
        data = self.cleaned_data
        return PlanSettings(
            name=data["name"],
            rubric=data["rubric"],
            size=SampleSize(data["chats"], data["rule"], data["minimum"], data["maximum"]),
            starts_at=data["starts_at"],
            audit_share=self.audit_share,
            oversample=data["oversample"] or 0,
            overlap=data["overlap"],
            raters=list(data["raters"]),
            group=data["group"],
            criteria=list(data["criteria"]),
        )

    @property
    def judge(self) -> JudgeChoice:
        """Return the plan's judge."""
        data = self.cleaned_data
        return JudgeChoice(
            data["profile"],
            data["budget_usd"],
            Run.Mode(data["mode"]),
            anchor_set=data["anchor_set"],
            anchors=self.anchor_count,
        )

    @property
    def anchor_count(self) -> int:
        """Return the anchors a night: all of a set by default, 0 without a set."""
        chosen: Any = self.cleaned_data.get("anchor_set")
        return min(self.cleaned_data.get("anchors") or chosen.size, MOST_ANCHORS) if chosen else 0

    def refuse(self, problem: FieldProblem) -> None:
        """Show the service's problem at its field."""
        name = self.FIELDS.get(problem.field, problem.field)
        self.add_error(name if name in self.fields else None, problem.message)


def _initial(plan: SamplePlan) -> dict[str, Any]:
    """Return a plan's values as the form shows them."""
    judge = NightlyJudge.objects.select_related("profile", "anchor_set").get(plan=plan)
    names = ("name", "rubric", "starts_at", "chats", "rule", "minimum", "maximum")
    return {name: getattr(plan, name) for name in (*names, "oversample", "overlap", "group")} | {
        "audit_percent": f"{100 * plan.audit_share:.10g}",
        "raters": list(plan.raters.all()),
        "criteria": list(plan.criteria.all()),
        "profile": judge.profile,
        "budget_usd": judge.budget_usd and f"{judge.budget_usd:f}".rstrip("0").rstrip("."),
        "mode": judge.mode,
        "anchor_set": judge.anchor_set,
        "anchors": judge.anchors or None,
    }
