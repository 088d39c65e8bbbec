"""What has to be said of the labels and verdicts that a report covers, to whoever reads it."""

from alignment.comparison.core.disclosure_limit import FEWEST
from alignment.comparison.queries.scope import Scope
from alignment.comparison.queries.scope_summary import covered
from evaluation.runs.queries.runs import run_notices
from labeling.models.people import Rater

DEMO_LABELS = "labels written for this demo"
KINDS = {
    Rater.Kind.DEMO: DEMO_LABELS,
    Rater.Kind.AUTOMATIC: "some labels are automatic, not given by a person",
}


def scope_notices(scope: Scope) -> list[str]:
    """Of the run, of chats that are left out, of labels that are not simply people's."""
    found = list(run_notices(scope.run)) if scope.run else []
    if scope.without_holdout and (not scope.split or scope.split in scope.without_holdout):
        found.append(f"holdout chats are left out: figures on fewer than {FEWEST} are for leads alone")
    about = covered(scope)
    if about.drawn:
        chats = f"{about.drawn} labelled chat{' was' if about.drawn == 1 else 's were'}"
        found.append(
            f"{chats} drawn by a judge's verdict: a report's figures by criterion are weighted for that,"
            " others count such labels as they are"
        )
    kinds = about.rater_kinds
    return found + [words for kind, words in KINDS.items() if kind in kinds]
