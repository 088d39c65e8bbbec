"""Our forms in place of those of django-allauth, by its names for them."""

ACCOUNT_FORMS = {
    "login": "labeling.people.forms.SignInForm",
    "change_password": "labeling.people.forms.ChangePasswordForm",
    "reset_password": "labeling.people.forms.ResetByMailForm",
    "reset_password_from_key": "labeling.people.forms.NewPasswordForm",
    "reauthenticate": "labeling.people.forms.PasswordAgainForm",
}
MFA_FORMS = {
    "authenticate": "labeling.people.forms.CodeForm",
    "reauthenticate": "labeling.people.forms.CodeAgainForm",
    "authenticate_webauthn": "labeling.people.forms.PasskeyStepForm",
    "reauthenticate_webauthn": "labeling.people.forms.PasskeyAgainForm",
    "login_webauthn": "labeling.people.forms.PasskeySignInForm",
    "activate_totp": "labeling.people.forms.AppForm",
    "add_webauthn": "labeling.people.forms.PasskeyForm",
    "edit_webauthn": "labeling.people.forms.PasskeyNameForm",
}
