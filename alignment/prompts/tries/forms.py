"""Forms of preview and tries: judge profile, chats and budget."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, cast

from django import forms

from alignment.comparison.queries.latest_verdicts import latest_verdicts
from alignment.prompts.tries.queries.bench import AGREEING, DISAGREEING, MOST_SHOWN
from alignment.prompts.tries.queries.results import usual_chat
from alignment.prompts.tries.services import (
    CHAT,
    DISAGREEMENTS,
    MOST_CHATS,
    USUAL_CHATS,
    BenchChoice,
    TryChoice,
)
from evaluation.judges.queries.profiles import default_profile
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.queries.versions import champions
from evaluation.runs.forms import LEAST_BUDGET, ProfileChoice
from labeling.models.people import User
from labeling.models.rubric import Criterion

LARGEST_ID = 2**63 - 1  # of the database's integers
LONGEST_ID = 19  # digits


def ids_in(given: Sequence[str]) -> tuple[int, ...]:
    """Return the ids in these values, separated by commas, each once; what is no id is ignored.

    >>> ids_in(["7,5", "x", "7"])
    (7, 5)
    """
    parts = [part for one in given for part in one.split(",")]
    return tuple(dict.fromkeys(int(one) for one in parts if one.isdecimal() and len(one) < LONGEST_ID))


class PromptForm(forms.Form):
    """The judge profile, the budget, and the version that is tried without a draft."""

    profile = ProfileChoice(
        queryset=JudgeProfile.objects.none(), required=False, label="Judge profile", empty_label=None
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


class BenchForm(PromptForm):
    """How many chats stand beside the editor, and those to try: `chats`, or `only` one of them."""

    disagreeing = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_SHOWN, initial=DISAGREEING, label="Disagreements"
    )
    agreeing = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_SHOWN, initial=AGREEING, label="Agreeing chats"
    )
    only = forms.IntegerField(required=False, min_value=1, max_value=LARGEST_ID)

    def counts(self) -> dict[str, int]:
        """Return how many chats of each group to show; what is missing or invalid has the usual number."""
        data = getattr(self, "cleaned_data", {})
        given = {"disagreeing": data.get("disagreeing"), "agreeing": data.get("agreeing")}
        usual = {"disagreeing": DISAGREEING, "agreeing": AGREEING}
        return {name: usual[name] if n is None else n for name, n in given.items()}

    def choice(self) -> BenchChoice:
        """Return what to try."""
        data = self.cleaned_data
        given = self.data.getlist("chats") if hasattr(self.data, "getlist") else []
        return BenchChoice(
            profile=data["profile"],
            chat_ids=(data["only"],) if data["only"] else ids_in(given),
            base=data["base"],
            budget_usd=cast(Decimal | None, data["budget_usd"]),
        )


class TryForm(PromptForm):
    """`choice` once it is valid; omitted fields have usual values."""

    chat = forms.IntegerField(required=False, min_value=1, max_value=LARGEST_ID, label="Chat")
    what = forms.ChoiceField(required=False, choices=[(CHAT, CHAT), (DISAGREEMENTS, DISAGREEMENTS)])
    n = forms.IntegerField(required=False, min_value=1, max_value=MOST_CHATS, label="Disagreements")

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
        champion = champions(criteria=[self._criterion]).get(self._criterion.pk)
        latest = latest_verdicts(criterion=self._criterion, champion=champion)
        usual = usual_chat(criterion=self._criterion, user=self._user, latest=latest)
        return usual.pk if usual else 0
