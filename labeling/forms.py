"""Forms of the labelling pages."""

from typing import TYPE_CHECKING, Any, cast

from django import forms

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
