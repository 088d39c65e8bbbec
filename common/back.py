"""The page that a reader came from, for the link *Back*."""

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from django.http import HttpRequest
from django.urls import Resolver404, resolve
from django.utils.http import url_has_allowed_host_and_scheme

# A longer address is not taken along.
LONGEST = 1500


@dataclass(frozen=True, slots=True)
class Origin:
    """A page of this site: its address, and the name of its route."""

    url: str
    route: str


def origin_of(request: HttpRequest) -> Origin | None:
    """Return the page that `?back=` names, else the one that linked here; None for other sites.

    A page of the same route passes on the page that it names itself.
    """
    named = _page(request.GET.get("back", ""))
    if named:
        return named
    try:
        referer = urlsplit(request.headers.get("Referer", ""))
    except ValueError:  # no address at all
        return None
    if referer.netloc != request.get_host():
        return None
    page = _page(referer.path + (f"?{referer.query}" if referer.query else ""))
    own = request.resolver_match
    if page and own and page.route == own.view_name:
        return _page(parse_qs(referer.query).get("back", [""])[0])
    return page


def _page(url: str) -> Origin | None:
    local = url.startswith("/") and len(url) <= LONGEST
    if not local or not url_has_allowed_host_and_scheme(url, allowed_hosts=None):
        return None
    try:
        match = resolve(urlsplit(url).path)
    except (Resolver404, ValueError):
        return None
    return Origin(url, match.view_name)
