"""WSGI entry point. Its import takes as long as it must, so that no request waits for routes or templates."""

import gc
import os
from pathlib import Path

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.template import engines
from django.template.utils import get_app_template_dirs
from django.urls import reverse

from lace_site.settings import database_wait

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")


def warm_up() -> int:
    """Load all routes, with the views they import, and our templates; how many templates.

    No database connection is left open: gunicorn forks after this.
    """
    reverse("home")  # fills the table of all routes
    folders = [settings.BASE_DIR / "templates", *(Path(one) for one in get_app_template_dirs("templates"))]
    packages = settings.BASE_DIR / ".venv"
    own = [
        folder
        for folder in folders
        if folder.is_relative_to(settings.BASE_DIR) and not folder.is_relative_to(packages)
    ]
    names = [str(file.relative_to(folder)) for folder in own for file in folder.rglob("*.html")]
    for name in names:
        engines["django"].get_template(name)
    connections.close_all()
    return len(names)


application = get_wsgi_application()
# NB: a page that waits longer holds a thread that other raters need.
database_wait(settings.DATABASES["default"], settings.WEB_DATABASE_WAIT_SECONDS)
warm_up()
# What is loaded by now stays: a full collection would walk all of it, 0.2 s in the midst of a request.
gc.collect()
gc.freeze()
