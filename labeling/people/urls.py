"""Sign-in, sign-out and passwords, under the names that django-allauth looks for; no sign-up."""

from django.urls import path

from labeling.people.views import accounts

urlpatterns = [
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
]
