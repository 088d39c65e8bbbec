"""App configuration."""

from django.apps import AppConfig


class AlignmentConfig(AppConfig):
    """Agreement between raters and judge."""

    name = "alignment"
