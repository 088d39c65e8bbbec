"""Form for the workspace settings."""

from django import forms


class SettingsForm(forms.Form):
    """Rules for labelling; each help text names the effect on raters and on agreement."""

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
