"""Forms of accounts, API tokens and workspace settings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from allauth.account import forms as allauth
from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    EditWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms
from django.contrib.auth.models import Group
from django.http import HttpRequest

from common.problems import FieldProblem
from labeling.models.people import Role, SecondFactor
from labeling.people.core import OBJECT_PATTERN
from labeling.people.services.mail import reset_ask
from labeling.people.services.passkeys import BECAUSE, passkey_tried, second_step

if TYPE_CHECKING:
    MultipleChoice = forms.ModelMultipleChoiceField[Any]
else:
    MultipleChoice = forms.ModelMultipleChoiceField  # NB: not subscriptable at run time

Choices = list[tuple[str, str]]
CODE_ATTRIBUTES = {"inputmode": "numeric", "autocomplete": "one-time-code", "autofocus": True}
PASSWORD_HELP = "At least 8 characters; no common password, not your name."  # noqa: S105  a help text


def _words(form: forms.Form, **labels: str) -> None:
    """Give fields of allauth our labels, without its placeholders and help."""
    for name, label in labels.items():
        field = form.fields[name]
        field.label, field.help_text = label, ""
        field.widget.attrs.pop("placeholder", None)


class SignInForm(allauth.LoginForm):  # type: ignore[misc]  # allauth has no types
    """Sign in by user name or e-mail."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, login="User name or e-mail", password="Password")  # noqa: S106  a label
        self.fields["login"].widget.attrs |= {"autocomplete": "username", "autofocus": True}


class ChangePasswordForm(allauth.ChangePasswordForm):  # type: ignore[misc]
    """Change one's own password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(
            self,
            oldpassword="Current password",
            password1="New password",
            password2="New password again",
        )
        self.fields[
            "password1"
        ].help_text = f"{PASSWORD_HELP} A new password ends your other sessions and revokes your API tokens."


class NewPasswordForm(allauth.ResetPasswordKeyForm):  # type: ignore[misc]
    """Set a password by a link."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, password1="New password", password2="New password again")
        self.fields["password1"].help_text = PASSWORD_HELP


class ResetByMailForm(allauth.ResetPasswordForm):  # type: ignore[misc]
    """Ask for a link by e-mail."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, email="E-mail")

    def clean_email(self) -> str:
        """Return the address. NB: unlike allauth, look up no account: that would take time for one."""
        return str(self.cleaned_data["email"]).strip()

    def save(self, request: HttpRequest, **kwargs: Any) -> str:
        """Let a worker look for accounts and send links."""
        email = str(self.cleaned_data["email"])
        reset_ask(email=email)
        return email


class ProblemForm(forms.Form):
    """A form that shows the problems of a service at its fields."""

    def refuse(self, problem: FieldProblem) -> None:
        """Show the problem at its field."""
        field = problem.field if problem.field in self.fields else None
        self.add_error(field, f"{problem.message[:1].upper()}{problem.message[1:]}.".replace("..", "."))


class PersonFields(ProblemForm):
    """Name and e-mail of an account."""

    name = forms.CharField(required=False, max_length=150, label="Name", help_text="As others see it.")
    email = forms.EmailField(
        required=False, label="E-mail", help_text="For signing in and for inbox e-mails."
    )


class OwnAccountForm(PersonFields):
    """Create one's own account: by an invitation, or as the first one."""

    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text="Letters, digits and @ . + - _",
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password1 = forms.CharField(
        label="Password",
        strip=False,
        help_text=PASSWORD_HELP,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    password2 = forms.CharField(
        label="Password again",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    field_order = ("code", "username", "name", "email", "password1", "password2")

    def clean(self) -> dict[str, Any]:
        """Refuse two different passwords."""
        data = super().clean() or self.cleaned_data
        if data.get("password1") and data.get("password2") and data["password1"] != data["password2"]:
            self.add_error("password2", "The two passwords differ. Type both again.")
        return data

    @property
    def arguments(self) -> dict[str, str]:
        """Return the service's arguments."""
        data = self.cleaned_data
        fields = {name: data[name] for name in ("username", "name", "email")}
        return fields | {"password": data["password1"]}


class WelcomeForm(OwnAccountForm):
    """Create the first account."""

    code = forms.CharField(
        max_length=60,
        label="Setup code",
        help_text="The start of the server prints it, in the link to this page.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class InvitationForm(ProblemForm):
    """Invite one person."""

    role = forms.ChoiceField(choices=Role.choices, label="Role")
    name = forms.CharField(
        required=False,
        max_length=150,
        label="Name (optional)",
        widget=forms.TextInput(attrs={"class": "input", "autocomplete": "off"}),
    )
    email = forms.EmailField(
        required=False,
        label="E-mail (optional)",
        widget=forms.EmailInput(attrs={"class": "input", "autocomplete": "off"}),
    )


class RolesField(forms.MultipleChoiceField):
    """The three roles as boxes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=Role.choices, widget=forms.CheckboxSelectMultiple, label="Roles", **options)


class NewAccountForm(PersonFields):
    """Create an account for another person."""

    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text="Letters, digits and @ . + - _. It cannot be changed later.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    roles = RolesField()
    field_order = ("username", "name", "email", "roles")


class PersonForm(PersonFields):
    """Change an account."""

    roles = RolesField(required=False)
    groups = MultipleChoice(
        required=False, queryset=Group.objects.none(), widget=forms.CheckboxSelectMultiple, label="Groups"
    )

    def __init__(self, *args: Any, groups: list[Group], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast("MultipleChoice", self.fields["groups"])
        field.queryset = Group.objects.filter(pk__in=[group.pk for group in groups]).order_by("name")


class GroupForm(ProblemForm):
    """Create a group of raters."""

    name = forms.CharField(max_length=150, label="Name of the new group")


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
    second_factor = forms.ChoiceField(
        required=False,
        choices=SecondFactor.choices,
        label="Second factor required for",
        help_text="They sign in with an authenticator app or a passkey, and set one up on their next page.",
    )

    def clean_second_factor(self) -> str:
        """Return the choice; the stored one where it was left out."""
        return self.cleaned_data["second_factor"] or str(self.initial["second_factor"])


class PasskeyForm(AddWebAuthnForm):  # type: ignore[misc]
    """Add a passkey, which signs in alone: its device asks for a fingerprint, a face or a PIN."""

    passwordless = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, name="Name")
        self.fields["name"].help_text = "Where you keep it: this laptop, your phone, a key."
        self.fields["name"].max_length = 100
        self.fields["name"].widget.attrs |= {"maxlength": "100", "autocomplete": "off"}

    def clean(self) -> dict[str, Any]:
        """Refuse a key whose device did not ask who is there."""
        self.cleaned_data["passwordless"] = True
        return cast(dict[str, Any], super().clean())


class PasskeyNameForm(EditWebAuthnForm):  # type: ignore[misc]
    """Give a passkey another name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, name="Name")
        self.fields["name"] = forms.CharField(
            max_length=100,
            label="Name",
            help_text="Where you keep it: this laptop, your phone, a key.",
            widget=forms.TextInput(attrs={"autocomplete": "off"}),
        )


class CodeForm(AuthenticateForm):  # type: ignore[misc]
    """The second step of a sign-in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, code="Code")
        self.fields["code"].help_text = "Of your authenticator app, or one of your recovery codes."
        self.fields["code"].widget.attrs |= CODE_ATTRIBUTES

    def clean_code(self) -> str:
        """Check the code; a lock-out is logged."""
        with second_step(request=context.request, user=self.user):
            return str(super().clean_code())


class CodeAgainForm(ReauthenticateForm):  # type: ignore[misc]
    """Confirm a change by a code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, code="Code")
        self.fields["code"].widget.attrs |= CODE_ATTRIBUTES


class PasskeySignInForm(LoginWebAuthnForm):  # type: ignore[misc]
    """Sign in with a passkey alone."""

    def clean_credential(self) -> Authenticator:
        """Check the passkey; one that is refused is counted and logged."""
        with passkey_tried(request=context.request, credential=self.cleaned_data["credential"]):
            return super().clean_credential()


class PasskeyStepForm(AuthenticateWebAuthnForm):  # type: ignore[misc]
    """A passkey as the second step of a sign-in."""

    def clean_credential(self) -> Authenticator:
        """Check the passkey; one that is refused is logged."""
        with second_step(request=context.request, user=self.user, because=BECAUSE):
            return super().clean_credential()


class PasskeyAgainForm(ReauthenticateWebAuthnForm):  # type: ignore[misc]
    """Confirm a change by a passkey."""

    def clean_credential(self) -> Authenticator:
        """Check the passkey; one that is refused is logged."""
        with second_step(request=context.request, user=self.user, because=BECAUSE):
            return super().clean_credential()


class AppForm(ActivateTOTPForm):  # type: ignore[misc]
    """Set up an authenticator app."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, code="Code that the app shows")
        self.fields["code"].widget.attrs |= CODE_ATTRIBUTES


class PasswordAgainForm(allauth.ReauthenticateForm):  # type: ignore[misc]
    """Confirm a change by the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _words(self, password="Password")  # noqa: S106  a label
        self.fields["password"].widget.attrs |= {"autofocus": True}


class AuditFilterForm(forms.Form):
    """Filters of the audit log."""

    person = forms.ChoiceField(required=False, label="Who")
    kind = forms.ChoiceField(required=False, label="Kind")
    first = forms.DateField(
        required=False, label="From", widget=forms.DateInput(attrs={"type": "date", "class": "input"})
    )
    last = forms.DateField(
        required=False, label="To", widget=forms.DateInput(attrs={"type": "date", "class": "input"})
    )
    object = forms.RegexField(OBJECT_PATTERN, required=False, max_length=80, widget=forms.HiddenInput)
    token_name = forms.CharField(required=False, max_length=120, widget=forms.HiddenInput)

    def __init__(self, *args: Any, people: Choices, kinds: Choices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, choices in (("person", people), ("kind", kinds)):
            cast(forms.ChoiceField, self.fields[name]).choices = choices
