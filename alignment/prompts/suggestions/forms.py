"""The form that asks for a revision of a prompt."""

from typing import TYPE_CHECKING, Any

from django import forms

from alignment.prompts.suggestions.services import CHATS, FEWEST, MOST, SuggestionChoice
from evaluation.models.judges import JudgeProfile

if TYPE_CHECKING:
    ModelChoice = forms.ModelChoiceField[JudgeProfile]
else:
    ModelChoice = forms.ModelChoiceField  # NB: not subscriptable at run time


class SuggestForm(forms.Form):
    """How many chats, whose model; `choice` is what it amounts to once it is valid."""

    chats = forms.IntegerField(min_value=FEWEST, max_value=MOST, label="Chats at most")
    profile = ModelChoice(
        queryset=JudgeProfile.objects.none(), required=False, label="Model of", empty_label="default profile"
    )
    anew = forms.BooleanField(required=False)

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="suggest_%s", initial={"chats": CHATS})
        self.fields["profile"].queryset = JudgeProfile.objects.order_by("name")  # type: ignore[attr-defined]

    @property
    def choice(self) -> SuggestionChoice:
        """Of a valid form."""
        given = self.cleaned_data
        return SuggestionChoice(given["chats"], given["profile"], given["anew"])

    @property
    def offered(self) -> SuggestionChoice:
        """What to estimate: the choice, or where there is none (yet) the usual one."""
        return self.choice if self.is_bound and self.is_valid() else SuggestionChoice()

    @property
    def first_error(self) -> str:
        """The first thing that is wrong, with its field's name."""
        name, errors = next(iter(self.errors.items()))
        return f"{self.fields[name].label or name}: {errors[0]}"
