"""App configuration."""

from django.apps import AppConfig


class AlignmentConfig(AppConfig):
    """Agreement between raters and judge."""

    name = "alignment"

    def ready(self) -> None:
        """Tell the simulated judge where its answers come from; they are read at its first question."""
        from alignment.demo_workspace.queries import (
            demo_answers,  # here: models must be loaded
        )
        from evaluation.gateway.simulated import answers_from

        answers_from(demo_answers)
