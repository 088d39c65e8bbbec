"""The forms that issue and revoke certificates."""

from django import forms

from alignment.certificates.services.certificates import DAYS, LONGEST_DAYS, LONGEST_REASON
from labeling.models.chats import Split

WHOLE_DAYS = f"enter 1 to {LONGEST_DAYS} whole days"


class IssueForm(forms.Form):
    """The validity of a certificate on a report; `split` is the report's."""

    split = forms.ChoiceField(
        choices=[("", ""), *Split.choices],
        required=False,
        widget=forms.HiddenInput(attrs={"id": "certify_split"}),
        error_messages={"invalid_choice": "there is no such split"},
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=LONGEST_DAYS,
        initial=DAYS,
        label="Valid for (days)",
        help_text=f"1 to {LONGEST_DAYS}. Ends earlier if the judge or the questions change, "
        "or if today's report no longer qualifies.",
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), WHOLE_DAYS),
    )


class RevokeForm(forms.Form):
    """The reason to revoke a certificate."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Reason",
        error_messages={"required": "Give a reason. It is stored with the certificate."},
    )
