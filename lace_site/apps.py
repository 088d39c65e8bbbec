"""App configuration."""

from django.apps import AppConfig
from django.conf import settings


class LaceSiteConfig(AppConfig):
    """What wires the apps: settings, routes, Celery, and the docs as pages."""

    name = "lace_site"

    def ready(self) -> None:
        """Render docs that changed, before static files are looked up."""
        from lace_site.docs import render_docs  # needs loaded apps

        render_docs(settings.BASE_DIR / "docs", settings.DOCS_DIR)
