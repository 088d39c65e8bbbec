"""App configuration."""

from django.apps import AppConfig


class AlignmentConfig(AppConfig):
    """Agreement between people and judge."""

    name = "alignment"
