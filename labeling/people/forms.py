"""Forms for API tokens and workspace settings."""

from collections.abc import Mapping
from typing import Any, cast

from django import forms


class TokenForm(forms.Form):
    """Create an API token."""

    DAYS = ((7, "a week"), (30, "30 days"), (90, "90 days"), (365, "a year"), (0, "no expiry"))

    name = forms.CharField(max_length=120, label="Name", help_text="The program that will use the token.")
    expires = forms.TypedChoiceField(choices=DAYS, coerce=int, initial=90, label="Expires after")
    scopes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Scopes")

    def __init__(self, *args: Any, scopes: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.MultipleChoiceField, self.fields["scopes"]).choices = list(scopes.items())


class SettingsForm(forms.Form):
    """Rules for labelling and for scores; each help text names the effect on raters and on results."""

    evidence_on_false = forms.BooleanField(
        required=False,
        label="Evidence with every False",
        help_text="Raters must mark a turn or words for each False. Slower, but shows why raters "
        "disagree. Agreement is computed as before.",
    )
    comment_required = forms.BooleanField(
        required=False,
        label="A comment with every answer",
        help_text="Raters must explain each answer. Slowest; suits small sets and calibration rounds. "
        "Agreement is computed as before.",
    )
    reveal_after_submit = forms.BooleanField(
        required=False,
        label="Show the judge’s view after submitting",
        help_text="Raters may see the verdicts on chats that they submitted. Later changes are marked "
        "post-reveal and excluded from agreement.",
    )
    subjective_in_session_score = forms.BooleanField(
        required=False,
        label="Subjective criteria in the session score",
        help_text="Criteria of the tier subjective count in the score of a whole chat, for judge and raters. "
        "Reports are computed again; stored ones stay as they are.",
    )
