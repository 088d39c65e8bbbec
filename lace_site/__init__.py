"""Settings, routes and the Celery application; no logic."""

from lace_site.celery import app as celery_app

__all__ = ["celery_app"]
