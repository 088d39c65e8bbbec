"""App configuration."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """The shared code: template tags, static files, plain Python, and drafts of forms."""

    name = "common"
