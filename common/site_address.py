"""The workbench's own address, for links outside its pages: in e-mails and events of webhooks."""

from django.conf import settings


def site_address(path: str) -> str:
    """Return the address of a page. NB: never from the request, whose host anybody can name."""
    return f"{settings.SITE_URL}{path}"
