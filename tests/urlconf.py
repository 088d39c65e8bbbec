"""Every pattern of the URLconf."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver, resolve


@dataclass(frozen=True)
class Route:
    """One pattern of the URLconf with an address that leads to it."""

    name: str
    url: str


def _walk(patterns: list[URLPattern | URLResolver], prefix: str, space: str) -> Iterator[Route]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            yield from _walk(pattern.url_patterns, route, inner)
        else:
            url = "/" + _example(route)
            assert resolve(url).func == pattern.callback, f"{url} leads past {route}"
            yield Route(f"{space}{pattern.name}", url)


def _example(route: str) -> str:
    """An address for a route: 1 for every part that varies, the first of named alternatives."""
    route = re.sub(r"(?<!\(\?P)<(?:\w+:)?\w+>", "1", route)
    route = re.sub(r"\(\?P<\w+>(\w+)[\w|]*\)", r"\1", route)
    route = re.sub(r"\(\?P<\w+>\.\*\)", "anything", route)
    return route.replace("^", "").replace("$", "")


def all_routes() -> list[Route]:
    return list(_walk(get_resolver().url_patterns, "", ""))
