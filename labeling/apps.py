"""App configuration."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.management import create_permissions
from django.db.models.signals import post_migrate


def make_roles(sender: AppConfig, **_: Any) -> None:
    """Create the role groups after each migration."""
    # Models are not loaded yet when this module is imported.
    from labeling.people.services.roles import roles_ensure

    create_permissions(sender, verbosity=0)  # Django's own receiver may run after ours
    roles_ensure()


class LabelingConfig(AppConfig):
    """Chats, rubric, raters, labels."""

    name = "labeling"

    def ready(self) -> None:
        """Connect `make_roles`: groups need permissions, which exist after the migrations."""
        from allauth.socialaccount.signals import social_account_added
        from django.contrib.auth.signals import user_logged_out

        from labeling.people.services import accounts, second_factor, sign_in_log, sign_on

        post_migrate.connect(make_roles, sender=self)
        accounts.watch()
        second_factor.watch()
        sign_on.provider_use()
        user_logged_out.connect(sign_in_log.sign_out_done, dispatch_uid="log sign-outs")
        social_account_added.connect(sign_on.connected, dispatch_uid="log single sign-on")
