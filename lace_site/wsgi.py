"""WSGI entry point."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from lace_site.settings import database_wait

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")
application = get_wsgi_application()
# NB: a page that waits longer holds a thread that other raters need.
database_wait(settings.DATABASES["default"], settings.WEB_DATABASE_WAIT_SECONDS)
