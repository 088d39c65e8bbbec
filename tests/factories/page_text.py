"""What a page says, without its markup."""

import re
from typing import Any

from django.contrib.auth.models import AnonymousUser

from alignment.prompts.queries.version_metrics import VersionMetrics, version_metrics
from tests.factories.compared_runs import text_of
from tests.factories.rater_quality import polite


def words_of(answer: Any) -> str:
    """The text of a page, without its markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", text_of(answer)).split())


def figures() -> tuple[VersionMetrics, ...]:
    """What the one version with a run was measured to be."""
    (found,) = version_metrics([polite()], user=AnonymousUser()).values()
    return found.rows
