"""Form for API tokens."""

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
