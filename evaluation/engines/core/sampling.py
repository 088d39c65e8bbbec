"""Several answers to one question: the majority decides; a tie is no verdict."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from evaluation.core.types import VerdictResult, VerdictState, Votes

_WORDS = {True: "True", False: "False", None: "not applicable"}


def majority(samples: Sequence[Sequence[VerdictResult]]) -> tuple[VerdictResult, ...]:
    """Return one verdict per criterion: the answer of more than half of the readable samples.

    A failed sample could still give any answer, so it counts against every majority.

    Parameters
    ----------
    samples : the verdicts of each sample, criteria in the same order.

    Returns
    -------
    The verdict of the first sample with the majority's answer. The flag `from_sample:N` names it, from 0.
    `votes` counts the readable answers; `p_true` is their mean. Without a majority the verdict is `unparsed`
    with the flag `tied`, or `failed` if a sample failed. Without a readable sample it has the most common
    state.

    Raises
    ------
    ValueError : samples of different length.
    """
    return tuple(_settled(verdicts) for verdicts in zip(*samples, strict=True))


def _settled(verdicts: Sequence[VerdictResult]) -> VerdictResult:
    read = [verdict for verdict in verdicts if verdict.state == "read"]
    values = Counter(verdict.value for verdict in read)
    votes = Votes(true=values[True], false=values[False], not_applicable=values[None])
    if not read:
        state = Counter(verdict.state for verdict in verdicts).most_common(1)[0][0]
        return _first(verdicts, state, None, votes=votes)
    value, count = values.most_common(1)[0]
    failed = sum(verdict.state == "failed" for verdict in verdicts)
    if 2 * count <= len(read) + failed:
        return _tied(verdicts, values, votes)
    probabilities = [verdict.p_true for verdict in read if verdict.p_true is not None]
    chosen = _first(verdicts, "read", value, votes=votes)
    return replace(chosen, p_true=fmean(probabilities) if probabilities and value is not None else None)


def _first(
    verdicts: Sequence[VerdictResult], state: VerdictState, value: bool | None, *, votes: Votes
) -> VerdictResult:
    """Return the first verdict with this outcome and the number of its sample."""
    number = [(verdict.state, verdict.value) for verdict in verdicts].index((state, value))
    chosen = verdicts[number]
    return replace(chosen, votes=votes, flags=(f"from_sample:{number}", *chosen.flags))


def _tied(verdicts: Sequence[VerdictResult], values: Counter[bool | None], votes: Votes) -> VerdictResult:
    counts = ", ".join(f"{count} × {_WORDS[value]}" for value, count in values.most_common())
    missing = len(verdicts) - values.total()
    failed = next((verdict for verdict in verdicts if verdict.state == "failed"), None)
    why = f" ({failed.explanation})" if failed else ""
    without = f", {missing} without an answer{why}" if missing else ""
    return VerdictResult(
        criterion=verdicts[0].criterion,
        state="failed" if failed else "unparsed",
        explanation=f"The {len(verdicts)} answers have no majority: {counts}{without}.",
        flags=("tied",),
        votes=votes,
    )
