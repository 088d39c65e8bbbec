"""The form that starts a suggestion."""

from typing import TYPE_CHECKING, Any

from django import forms

from alignment.prompts.suggestions.services import CHATS, FEWEST, MOST, SuggestionChoice
from evaluation.models.judges import JudgeProfile

if TYPE_CHECKING:
    ModelChoice = forms.ModelChoiceField[JudgeProfile]
else:
    ModelChoice = forms.ModelChoiceField  # NB: not subscriptable at run time


class SuggestForm(forms.Form):
    """Number of chats and the profile whose model to use; `choice` once it is valid."""

    chats = forms.IntegerField(min_value=FEWEST, max_value=MOST, label="Maximum chats")
    profile = ModelChoice(
        queryset=JudgeProfile.objects.none(),
        required=False,
        label="Model of profile",
        empty_label="default profile",
    )
    anew = forms.BooleanField(required=False)
    from_texts = forms.BooleanField(required=False)

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="suggest_%s", initial={"chats": CHATS})
        self.fields["profile"].queryset = JudgeProfile.objects.order_by("name")  # type: ignore[attr-defined]

    @property
    def choice(self) -> SuggestionChoice:
        """The choice in a valid form."""
        data = self.cleaned_data
        return SuggestionChoice(data["chats"], data["profile"], data["anew"], data["from_texts"])

    @property
    def offered(self) -> SuggestionChoice:
        """The choice to estimate: this one if the form is valid, otherwise the default."""
        return self.choice if self.is_bound and self.is_valid() else SuggestionChoice()

    @property
    def first_error(self) -> str:
        """The first error, with its field's name."""
        name, errors = next(iter(self.errors.items()))
        return f"{self.fields[name].label or name}: {errors[0]}"
