"""Forms of labelling jobs."""

from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils import timezone

from labeling.models.chats import ChatSet
from labeling.models.labels import LabelingJob
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from labeling.sets.queries import labellers

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
        # Of a drawn set: those it was drawn for.
        drawn_for = active.filter(key__in=(chat_set.sampling or {}).get("criteria", ()))
        self.narrowed = drawn_for.exists()
        self.fields["criteria"].initial = drawn_for if self.narrowed else active
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
        return self.narrowed or any(name in self.errors for name in ("order", "seed", "criteria"))

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
