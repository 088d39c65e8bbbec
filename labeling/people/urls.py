"""Sign-in, passwords and second factors, under the names that django-allauth looks for; no sign-up."""

from django.urls import path

from labeling.people.views import account, accounts, sign_on

urlpatterns = [
    path("", account.account, name="mfa_index"),
    path("login/", accounts.SignIn.as_view(), name="account_login"),
    path("logout/", accounts.sign_out, name="account_logout"),
    path("inactive/", accounts.Inactive.as_view(), name="account_inactive"),
    path("password/", accounts.ChangePassword.as_view(), name="account_change_password"),
    path("password/reset/", accounts.ResetByMail.as_view(), name="account_reset_password"),
    path("password/reset/sent/", accounts.ResetSent.as_view(), name="account_reset_password_done"),
    path(
        "password/reset/<str:uidb36>/<str:key>/",
        accounts.SetPassword.as_view(),
        name="account_reset_password_from_key",
    ),
    path("again/", account.ReauthenticateByPassword.as_view(), name="account_reauthenticate"),
    path("again/code/", account.Reauthenticate.as_view(), name="mfa_reauthenticate"),
    path("again/passkey/", account.ReauthenticateByPasskey.as_view(), name="mfa_reauthenticate_webauthn"),
    path("code/", account.Authenticate.as_view(), name="mfa_authenticate"),
    path("app/", account.ActivateApp.as_view(), name="mfa_activate_totp"),
    path("app/remove/", account.DeactivateApp.as_view(), name="mfa_deactivate_totp"),
    path("recovery-codes/", account.ShowCodes.as_view(), name="mfa_view_recovery_codes"),
    path("recovery-codes/new/", account.NewCodes.as_view(), name="mfa_generate_recovery_codes"),
    path("recovery-codes/file/", account.DownloadCodes.as_view(), name="mfa_download_recovery_codes"),
    path("passkeys/login/", account.SignInByPasskey.as_view(), name="mfa_login_webauthn"),
    path("passkeys/new/", account.AddPasskey.as_view(), name="mfa_add_webauthn"),
    path("passkeys/<int:pk>/", account.RenamePasskey.as_view(), name="mfa_edit_webauthn"),
    path("passkeys/<int:pk>/remove/", account.RemovePasskey.as_view(), name="mfa_remove_webauthn"),
    path("sessions/end/", account.own_sessions_end, name="account_sessions_end"),
    path("sessions/<int:session_id>/end/", account.own_session_end, name="account_session_end"),
    path("sso/", sign_on.sign_on, name="sign_on"),
    path("sso/callback/", sign_on.sign_on_callback, name="sign_on_callback"),
    path("sso/disconnect/", account.sign_on_removed, name="sign_on_disconnect"),
]
