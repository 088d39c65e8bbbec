"""App configuration."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


def make_default_profile(sender: AppConfig, *, using: str, **_: Any) -> None:
    """The default judge profile exists in every migrated database."""
    from evaluation.judges.services.profiles import profiles_ensure
    from evaluation.models.judges import JudgeProfile  # models are not loaded when this module is

    # A partly migrated database has no table for it yet.
    if JudgeProfile._meta.db_table in connections[using].introspection.table_names():
        profiles_ensure()


class EvaluationConfig(AppConfig):
    """Prompts, judges, runs, verdicts."""

    name = "evaluation"

    def ready(self) -> None:
        """Profiles need their table, and that is made by the migrations."""
        post_migrate.connect(make_default_profile, sender=self)
