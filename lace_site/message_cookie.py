"""Messages for the next page: in a cookie that is named as the others of this site."""

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage


class _Cookie(CookieStorage):
    cookie_name = f"{settings.COOKIE_PREFIX}messages_{settings.SITE_NAME}"


class Messages(FallbackStorage):
    """A cookie, and the session for what is too long for it."""

    storage_classes = (_Cookie, SessionStorage)
