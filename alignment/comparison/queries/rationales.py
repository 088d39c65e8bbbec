"""Short rationales of labels and verdicts, for lists."""

from collections.abc import Sequence

from evaluation.models.runs import Verdict
from evaluation.runs.queries.steps import final_rationales

LONGEST_WORDS = 280  # characters


def judge_rationales(verdicts: Sequence[Verdict]) -> dict[int, str]:
    """Short rationales by verdict id: the formatter's explanation, else the start of the rationale."""
    final = final_rationales(verdicts)
    return {
        row.pk: short_rationale(row.explanation or row.rationale or final.get(row.pk, "")) for row in verdicts
    }


def short_rationale(text: str) -> str:
    """The start of a rationale, on one line."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_WORDS else f"{words[: LONGEST_WORDS - 1].rstrip()}…"
