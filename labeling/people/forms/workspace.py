"""Form of the workspace's settings."""

from django import forms


class SettingsForm(forms.Form):
    """The workspace's rules of labelling, each with what it does to raters and to agreement."""

    evidence_on_false = forms.BooleanField(
        required=False,
        label="Evidence with every False",
        help_text="A rater can submit a chat when each False points to a turn or a passage of it. Takes "
        "longer; shows where a disagreement begins. Agreement is counted as before.",
    )
    comment_required = forms.BooleanField(
        required=False,
        label="A comment with every answer",
        help_text="A rater can submit a chat when each answer says why. Takes longer still; suits small "
        "sets and calibration rounds. Agreement is counted as before.",
    )
    reveal_after_submit = forms.BooleanField(
        required=False,
        label="Show the judge’s view after submitting",
        help_text="A rater may look at the verdicts on a chat that they submitted. What they change from "
        "then on is kept as a revision marked post-reveal and counts in no agreement.",
    )
