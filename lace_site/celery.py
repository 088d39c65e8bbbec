"""The Celery application; tasks carry ids only, the database is the truth."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")

app = Celery("lace")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
