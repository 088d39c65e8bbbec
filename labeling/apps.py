"""App configuration."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.management import create_permissions
from django.db.models.signals import post_migrate


def make_roles(sender: AppConfig, **_: Any) -> None:
    """The role groups exist in every migrated database."""
    from labeling.people.services.roles import roles_ensure  # models are not loaded when this module is

    create_permissions(sender, verbosity=0)  # Django's own receiver for this may come after ours
    roles_ensure()


class LabelingConfig(AppConfig):
    """Chats, rubric, raters, labels."""

    name = "labeling"

    def ready(self) -> None:
        """Groups need permissions, and those are made after the migrations."""
        post_migrate.connect(make_roles, sender=self)
