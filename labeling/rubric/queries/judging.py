"""What the judging side knows of a criterion. The labelling side calls it by name: `CRITERION_JUDGING`."""

from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.utils.module_loading import import_string

from labeling.models.rubric import Criterion


def judging(name: str) -> Callable[..., Any]:
    """Return the function of the judging side with this name."""
    return cast(Callable[..., Any], import_string(settings.CRITERION_JUDGING[name]))


def articles() -> list[tuple[str, str]]:
    """Return key and title of every knowledge article."""
    return cast(list[tuple[str, str]], judging("articles")())


def articles_of(criterion: Criterion) -> tuple[str, ...]:
    """Return the keys of the articles that a criterion lists."""
    return cast(tuple[str, ...], judging("articles_of")(criterion))


def is_judged(criterion: Criterion) -> bool:
    """Whether a judge has been made for the criterion."""
    return bool(judging("is_judged")(criterion))
