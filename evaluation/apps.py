"""App configuration."""

from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    """Prompts, judges, runs, verdicts."""

    name = "evaluation"
