"""The forms that issue and revoke certificates."""

from django import forms

from alignment.services.certificates import DAYS, LONGEST_DAYS, LONGEST_REASON
from labeling.models.chats import Split


class IssueForm(forms.Form):
    """For how long the report's judge is certified; `split` is the report's."""

    split = forms.ChoiceField(
        choices=[("", ""), *Split.choices],
        required=False,
        widget=forms.HiddenInput(attrs={"id": "certify_split"}),
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=LONGEST_DAYS,
        initial=DAYS,
        label="Valid for so many days",
        help_text=f"At most {LONGEST_DAYS}. A change of prompt, model, questions or articles ends it before.",
    )


class RevokeForm(forms.Form):
    """Why a certificate must no longer be relied on."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Why it must not be relied on any more",
        error_messages={"required": "Say why: the reason stays with the certificate."},
    )
