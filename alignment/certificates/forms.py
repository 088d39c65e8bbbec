"""The forms that issue and revoke certificates."""

from typing import Any

from django import forms

from alignment.certificates.services.certificates import DAYS, LONGEST_DAYS, LONGEST_REASON
from labeling.models.chats import Split

WHOLE_DAYS = f"a certificate lasts from 1 to {LONGEST_DAYS} whole days"


class IssueForm(forms.Form):
    """For how long the report's judge is certified; `split` is the report's.

    `allows_nothing`: the certificate would allow no use at all, which has to be confirmed.
    """

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
        label="Valid for so many days",
        help_text=f"1 to {LONGEST_DAYS}. A change of prompt, model, questions or articles ends it before.",
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), WHOLE_DAYS),
    )
    although = forms.BooleanField(
        label="It allows no use on any criterion. Issue it all the same",
        error_messages={"required": "it would allow no use on any criterion; confirm that it shall"},
    )

    def __init__(self, *args: Any, allows_nothing: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not allows_nothing:
            del self.fields["although"]


class RevokeForm(forms.Form):
    """Why a certificate must no longer be relied on."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Why it must not be relied on any more",
        error_messages={"required": "Say why: the reason stays with the certificate."},
    )
