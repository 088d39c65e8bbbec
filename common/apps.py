"""App configuration."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """The shared ground floor: no models, only template tags and static files beside plain code."""

    name = "common"
