"""Forms of the labelling pages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from django import forms

from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.selectors.sets import labellers

if TYPE_CHECKING:
    MultipleChoice = forms.ModelMultipleChoiceField[Any]
else:
    MultipleChoice = forms.ModelMultipleChoiceField  # NB: not subscriptable at run time


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


class TokenForm(forms.Form):
    """Make an API token."""

    DAYS = ((7, "a week"), (30, "30 days"), (90, "90 days"), (365, "a year"), (0, "until it is revoked"))

    name = forms.CharField(max_length=120, label="Name", help_text="The program that will use it.")
    expires = forms.TypedChoiceField(choices=DAYS, coerce=int, initial=90, label="Good for")
    scopes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Rights")

    def __init__(self, *args: Any, scopes: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.MultipleChoiceField, self.fields["scopes"]).choices = list(scopes.items())
