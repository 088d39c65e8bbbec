"""The Celery application; tasks carry ids only, the database is the truth."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")

app = Celery("lace")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect  # type: ignore[untyped-decorator]  # celery has no types
def sweep_first(**_: Any) -> None:
    """A worker that starts may follow one that died: what that one held is free at once."""
    app.send_task("evaluation.tasks.sweep", expires=60)
