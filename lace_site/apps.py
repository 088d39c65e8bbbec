"""App configuration."""

import logging

from django.apps import AppConfig
from django.conf import settings

from lace_site.private_files import tighten, workspace_files
from lace_site.watch.tracing import traces_begin

logger = logging.getLogger(__name__)


class SiteConfig(AppConfig):
    """The site: settings, routes and the Celery application."""

    name = "lace_site"

    def ready(self) -> None:
        """Close files that an earlier version left readable for other accounts."""
        if changed := tighten(workspace_files(settings)):
            logger.warning("%s: closed %d files and folders to other accounts", settings.VAR_DIR, changed)
        traces_begin()
