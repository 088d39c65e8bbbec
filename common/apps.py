"""App configuration."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """The shared code: template tags, static files and plain Python, no models."""

    name = "common"
