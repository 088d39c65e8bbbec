"""What inbox items and comments are about: KIND:ID. Each feature says which of its things a user may open."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.utils.module_loading import import_string


@dataclass(frozen=True, slots=True)
class Subject:
    """A thing as a user may see it. `people` (user ids) are told of answers; `text` opened its thread."""

    title: str
    url: str
    people: tuple[int, ...] = ()
    text: str = ""


# Ids of one kind of thing, and a user -> those that the user may open. A constant number of queries.
Resolver = Callable[[Collection[int], Any], Mapping[int, Subject]]
KEY = re.compile(r"([a-z]+):(\d{1,18})", re.ASCII)


def subjects_open_to(user: AbstractUser, keys: Iterable[str]) -> dict[str, Subject]:
    """Return those that the user may open, by key. The number of queries depends on the kinds only."""
    by_kind: dict[str, list[int]] = defaultdict(list)
    for key in set(keys):
        if (match := KEY.fullmatch(key)) and match[1] in settings.INBOX_SUBJECTS:
            by_kind[match[1]].append(int(match[2]))
    return {
        f"{kind}:{pk}": subject
        for kind, ids in by_kind.items()
        for pk, subject in _resolver(kind)(ids, user).items()
    }


def _resolver(kind: str) -> Resolver:
    found: Resolver = import_string(settings.INBOX_SUBJECTS[kind])
    return found
