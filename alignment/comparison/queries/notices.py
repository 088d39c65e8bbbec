"""Cautions about the labels and verdicts of a report."""

from alignment.comparison.core.disclosure_limit import MINIMUM_HOLDOUT_CHATS
from alignment.comparison.queries.scope import Scope
from alignment.comparison.queries.scope_summary import scope_summary
from evaluation.prompts.queries.definitions import older_notices
from evaluation.runs.queries.runs import run_notices
from labeling.models.people import Rater

DEMO_LABELS = "labels written for this demo"
KINDS = {
    Rater.Kind.DEMO: DEMO_LABELS,
    Rater.Kind.AUTOMATIC: "some labels are automatic, not from a human rater",
}


def scope_notices(scope: Scope) -> list[str]:
    """Cautions: run, prompts, hidden holdout chats, weighted samples, clusters, demo or automatic labels."""
    notices = [*run_notices(scope.run), *older_notices([scope.run.judge])] if scope.run else []
    if scope.without_holdout and (not scope.split or scope.split in scope.without_holdout):
        notices.append(f"fewer than {MINIMUM_HOLDOUT_CHATS} holdout chats: only leads see their results")
    about = scope_summary(scope)
    if about.sampled:
        chats = f"{about.sampled} labelled chat{' was' if about.sampled == 1 else 's were'}"
        notices.append(
            f"{chats} sampled by verdict: results by criterion are weighted for that, other results are not"
        )
    if about.clustered:
        chats = f"{about.clustered} chat{' belongs' if about.clustered == 1 else 's belong'}"
        clusters = f"{about.clusters} cluster{'' if about.clusters == 1 else 's'}"
        notices.append(f"{chats} to {clusters}: intervals count clusters instead of chats")
    kinds = about.rater_kinds
    return notices + [words for kind, words in KINDS.items() if kind in kinds]
