"""The form of preview and tries: judge profile, chats and budget."""

from decimal import Decimal
from typing import Any, cast

from django import forms

from alignment.comparison.queries.latest_verdicts import latest_verdicts
from alignment.prompts.tries.queries import OfferedChats, chats_offered
from alignment.prompts.tries.services import CHAT, DISAGREEMENTS, MOST_CHATS, USUAL_CHATS, TryChoice
from evaluation.judges.queries.profiles import default_profile
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.queries.versions import champions
from evaluation.runs.forms import LEAST_BUDGET, ProfileChoice
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion

LONGEST_LABEL = 70
LARGEST_ID = 2**63 - 1  # of the database's integers


class TryForm(forms.Form):
    """`choice` once it is valid; omitted fields have the values that the form shows at first."""

    profile = ProfileChoice(
        queryset=JudgeProfile.objects.none(), required=False, label="Judge profile", empty_label=None
    )
    chat = forms.IntegerField(required=False, min_value=1, max_value=LARGEST_ID, label="Chat")
    what = forms.ChoiceField(required=False, choices=[(CHAT, CHAT), (DISAGREEMENTS, DISAGREEMENTS)])
    n = forms.IntegerField(
        required=False, min_value=1, max_value=MOST_CHATS, initial=USUAL_CHATS, label="Disagreements"
    )
    budget_usd = forms.DecimalField(
        required=False,
        min_value=LEAST_BUDGET,
        max_digits=12,
        decimal_places=4,
        label="Budget, US dollars",
        help_text="Empty: no limit.",
    )
    base = forms.IntegerField(required=False, min_value=1, max_value=LARGEST_ID, widget=forms.HiddenInput)

    def __init__(self, data: Any, *, criterion: Criterion, user: User) -> None:
        super().__init__(data, auto_id="try_%s")
        self._criterion, self._user = criterion, user
        profiles = cast(ProfileChoice, self.fields["profile"])
        profiles.queryset = JudgeProfile.objects.order_by("-is_default", "name")
        profiles.initial = default_profile()

    def offer(self) -> OfferedChats:
        """Fill the list of chats of a form to be shown, and return them."""
        latest = latest_verdicts(
            criterion=self._criterion, champion=champions(criteria=[self._criterion]).get(self._criterion.pk)
        )
        offered = chats_offered(criterion=self._criterion, user=self._user, latest=latest)
        groups = [("Disagreements", offered.disagreements), ("Other dev and train chats", offered.others)]
        field = self.fields["chat"]
        field.widget = forms.Select(choices=[(name, _options(rows)) for name, rows in groups if rows])
        field.initial = offered.usual.pk if offered.usual else None
        return offered

    def clean_profile(self) -> JudgeProfile:
        """Return the profile, or the default one."""
        profile = self.cleaned_data["profile"] or default_profile()
        if profile is None:
            raise forms.ValidationError("There is no judge profile. Add one first.")
        return cast(JudgeProfile, profile)

    def clean_base(self) -> PromptVersion | None:
        """Return the version with this number."""
        number = self.cleaned_data["base"]
        if number is None:
            return None
        version = PromptVersion.objects.filter(criterion=self._criterion, number=number).first()
        if version is None:
            raise forms.ValidationError(f"There is no version {number}.")
        return version

    def choice(self, *, chat_alone: bool = False) -> TryChoice:
        """Return what to try; `chat_alone`: the chat, even if disagreements are chosen."""
        data = self.cleaned_data
        one = chat_alone or data["what"] != DISAGREEMENTS
        return TryChoice(
            profile=data["profile"],
            chat_id=(data["chat"] or self._usual()) if one else None,
            n=data["n"] or USUAL_CHATS,
            base=data["base"],
            budget_usd=cast(Decimal | None, data["budget_usd"]),
        )

    def _usual(self) -> int:
        """Return the default chat; 0 if there is none."""
        usual = self.offer().usual
        return usual.pk if usual else 0


def _options(chats: tuple[Chat, ...]) -> list[tuple[int, str]]:
    return [(row.pk, _label(row)) for row in chats]


def _label(row: Chat) -> str:
    turns = f"{row.message_count} turn{'' if row.message_count == 1 else 's'}"
    return f"{row.external_id[:LONGEST_LABEL]}: {row.title[:LONGEST_LABEL]}, {turns}"
