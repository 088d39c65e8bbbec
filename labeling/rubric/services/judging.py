"""What a change of a criterion makes the judging side store."""

from collections.abc import Collection, Sequence

from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.rubric.queries.judging import judging


def articles_set(criterion: Criterion, keys: Sequence[str]) -> bool:
    """Set a criterion's articles to exactly these; return whether it changed any. Raises FieldProblem."""
    return bool(judging("articles_set")(criterion, keys))


def prompts_ensure(*, criteria: Collection[Criterion], by: User | None) -> None:
    """Give each criterion without a prompt its first one."""
    if criteria:
        judging("prompts_ensure")(criteria=criteria, by=by)
