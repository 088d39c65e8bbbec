"""Forms of the adjudication pages."""

from typing import TYPE_CHECKING, Any, cast

from django import forms

from labeling.adjudication.queries.queue import Filters, Kind
from labeling.adjudication.services import REASON_LIMIT
from labeling.models.chats import ChatSet, Topic
from labeling.models.labels import LabelingJob
from labeling.models.rubric import Criterion, Dimension

if TYPE_CHECKING:
    OneChoice = forms.ModelChoiceField[Any]
else:
    OneChoice = forms.ModelChoiceField  # NB: not subscriptable at run time


class NamedChoice(OneChoice):
    """A choice of rows by name."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the row's name."""
        return str(obj.name)


class AdjudicationFilterForm(forms.Form):
    """Filters of the adjudication queue; every field is optional."""

    kind = forms.ChoiceField(choices=Kind.choices, required=False, label="Items")
    set = NamedChoice(ChatSet.objects.none(), required=False, empty_label="All", label="Chat set")
    job = NamedChoice(LabelingJob.objects.none(), required=False, empty_label="All", label="Job")
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sets = ChatSet.objects.listed(also=self.data.get("set"))
        cast(NamedChoice, self.fields["set"]).queryset = sets.order_by("name")
        jobs = LabelingJob.objects.listed(also=self.data.get("job"))
        cast(NamedChoice, self.fields["job"]).queryset = jobs.order_by("-pk")

    def filters(self) -> Filters:
        """Return the filters; the form must be valid."""
        data = self.cleaned_data
        return Filters(
            kind=data["kind"] or Kind.DISPUTED,
            chat_set=data["set"],
            job=data["job"],
            criterion=data["criterion"],
            dimension=data["dimension"].key if data["dimension"] else "",
            topic=data["topic"].key if data["topic"] else "",
        )


class DecisionForm(forms.Form):
    """A lead's decision; `seen` is the id of the decision shown on their page."""

    value = forms.TypedChoiceField(
        choices=[("true", "True"), ("false", "False"), ("null", "Not applicable")],
        coerce=lambda text: {"true": True, "false": False}.get(text),
        empty_value="",
        error_messages={"required": "Choose an answer."},
    )
    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Give a reason. Raters learn from it."}
    )
    seen = forms.IntegerField(required=False)

    def clean_reason(self) -> str:
        """Replace the browser's CR LF by LF."""
        return str(self.cleaned_data["reason"]).replace("\r\n", "\n")
