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
    """Accounts that may label, by rater name."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the rater's name, else the account's."""
        user = cast(User, obj)
        return str(getattr(user, "rater", None) or user.get_full_name() or user.get_username())


class CriterionChoice(MultipleChoice):
    """Criteria by name."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the criterion's name."""
        return cast(Criterion, obj).name


class GroupChoice(SingleChoice):
    """Groups of accounts."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the group's name; the group of all raters is marked."""
        name = cast(Group, obj).name
        return f"All raters ({name})" if name == Role.RATER else name


class JobForm(forms.Form):
    """Open a labelling job for a chat set; `arguments` are the service's arguments."""

    name = forms.CharField(max_length=120, label="Name", help_text="Raters see it in their queue.")
    due_on = forms.DateField(
        required=False,
        label="Due",
        help_text="The last day. The job stays open afterwards.",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=20,
        label="Labels per chat",
        help_text="How many raters label the same chat independently.",
    )
    overlap_percent = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=100,
        label="Share of chats with several raters (%)",
        help_text="Empty: all chats. The other chats get one label.",
    )
    raters = RaterChoice(
        required=False, queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple, label="Raters"
    )
    group = GroupChoice(
        required=False,
        queryset=Group.objects.none(),
        label="Group",
        empty_label="no group",
        help_text="All its members may label, including members who join later.",
    )
    order = forms.ChoiceField(
        choices=[(LabelingJob.Order.TOPIC, "by topic"), (LabelingJob.Order.RANDOM, "random")],
        initial=LabelingJob.Order.TOPIC,
        label="Order of the chats",
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2_147_483_647,
        initial=0,
        label="Seed",
        help_text="Fixes the order, the share and the positions of gold chats.",
    )
    calibration_set = SingleChoice(
        required=False,
        queryset=ChatSet.objects.none(),
        label="Calibration round",
        empty_label="no round",
        help_text="Every rater labels this set first. Then you start the job.",
    )
    gold_set = SingleChoice(
        required=False,
        queryset=ChatSet.objects.none(),
        label="Gold chats from",
        empty_label="no gold chats",
        help_text="Chats with adjudicated answers. Raters cannot tell them apart.",
    )
    gold_percent = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=50,
        label="Gold chats (% of a rater’s chats)",
    )
    criteria = CriterionChoice(
        queryset=Criterion.objects.none(), widget=forms.CheckboxSelectMultiple, label="Criteria"
    )
    # Field of the service → field of the form.
    FIELDS = {"overlap_share": "overlap_percent", "gold_rate": "gold_percent", "due_at": "due_on"}

    def __init__(self, *args: Any, chat_set: ChatSet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        active = chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)
        self._choose("criteria", active)
        # A sampled set preselects the criteria that it was sampled for.
        sampled_for = active.filter(key__in=(chat_set.sampling or {}).get("criteria", ()))
        self.narrowed = sampled_for.exists()
        self.fields["criteria"].initial = sampled_for if self.narrowed else active
        self._choose("raters", labellers())
        self._choose("group", Group.objects.filter(user__in=labellers()).distinct().order_by("name"))
        others = chat_set.rubric.chat_sets.exclude(pk=chat_set.pk).order_by("name")
        self._choose("gold_set", others.filter(kind=ChatSet.Kind.GOLD))
        self._choose("calibration_set", others.filter(kind=ChatSet.Kind.CALIBRATION))
        self.fields["overlap"].initial = min(2, max(1, labellers().count()))
        if chat_set.kind == ChatSet.Kind.CALIBRATION:
            self.fields["overlap"].help_text = "In a calibration set every rater labels every chat."

    def _choose(self, name: str, rows: QuerySet[Any]) -> None:
        cast(SingleChoice, self.fields[name]).queryset = rows

    @property
    def more_open(self) -> bool:
        """Whether to open "More options": it has an error or a preselection."""
        return self.narrowed or any(name in self.errors for name in ("order", "seed", "criteria"))

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments; `raters` are still accounts."""
        data = self.cleaned_data
        share, gold = data.get("overlap_percent"), data.get("gold_percent")
        names = ("name", "overlap", "raters", "group", "order", "criteria", "gold_set", "calibration_set")
        return {name: data[name] for name in names} | {
            "seed": data.get("seed") or 0,
            "overlap_share": share / 100 if share and share < 100 else None,
            "gold_rate": (gold or 0) / 100,
            "due_at": _end_of(data["due_on"]) if data.get("due_on") else None,
        }

    def refuse(self, error: ValidationError) -> None:
        """Show the service's error at its field."""
        if not hasattr(error, "error_dict"):
            self.add_error(None, error)
            return
        for field, messages in error.message_dict.items():
            here = self.FIELDS.get(field, field)
            self.add_error(here if here in self.fields else None, messages)


class AddRatersForm(forms.Form):
    """Accounts to add to a job; those in its team are not offered."""

    raters = RaterChoice(queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple, label="Raters")

    def __init__(self, *args: Any, job: LabelingJob, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = labellers().exclude(rater__in=job.raters.all())
        cast(SingleChoice, self.fields["raters"]).queryset = (
            others.exclude(groups=job.group) if job.group else others
        )


def _end_of(day: date) -> datetime:
    """Return the last second of a day in the site's time zone."""
    return timezone.make_aware(datetime.combine(day, time(23, 59, 59)))
