"""Forms of the adjudication pages."""

from typing import TYPE_CHECKING, Any

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
