"""Human answers on one chat, as the ground truth of a report counts them."""

from dataclasses import dataclass

from alignment.comparison.queries.scope import Scope
from labeling.models.chats import Chat
from labeling.models.labels import Consensus, Label

UNLABELLED = "unlabelled"
BY_VALUE = {True: Consensus.State.TRUE, False: Consensus.State.FALSE, None: Consensus.State.NA}
COMPARED = {Consensus.State.TRUE: frozenset({True}), Consensus.State.FALSE: frozenset({False})}


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """The answer on one criterion: `values` is compared with the verdict, `agreeing` of `raters` gave it."""

    state: str = UNLABELLED
    values: frozenset[bool] = frozenset()
    raters: int = 0
    agreeing: int = 0
    adjudicated: bool = False


def human_answers(scope: Scope, chat: Chat) -> dict[int, HumanAnswer]:
    """Human answers by criterion id, without unlabelled criteria."""
    if scope.rater:
        labels = Label.objects.counted().filter(chat=chat, rater__name=scope.rater)
        return {pk: _one(value) for pk, value in labels.values_list("criterion_id", "value")}
    rows = Consensus.objects.filter(chat=chat)
    return {row.criterion_id: _several(row, each=scope.each_rater) for row in rows}


def _one(value: bool | None) -> HumanAnswer:
    state = BY_VALUE[value]
    return HumanAnswer(state, COMPARED.get(state, frozenset()))


def _several(row: Consensus, *, each: bool) -> HumanAnswer:
    """The consensus; against each rater, `values` holds the answers of all raters."""
    counts = {"true": row.n_true, "false": row.n_false, "na": row.n_na}
    values = COMPARED.get(Consensus.State(row.state), frozenset())
    if each:
        values = frozenset(value for value, n in ((True, row.n_true), (False, row.n_false)) if n)
    return HumanAnswer(
        state=row.state,
        values=values,
        raters=sum(counts.values()),
        agreeing=counts.get(row.state, max(counts.values())),
        adjudicated=row.by == Consensus.By.ADJUDICATION,
    )
