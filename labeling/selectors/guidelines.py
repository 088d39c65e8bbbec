"""Reads of the raters' guidelines."""

from labeling.models.rubric import RubricGuideline


def guideline_in_force(*, rubric_id: int) -> RubricGuideline | None:
    """The newest guideline of the rubric; None where none is written."""
    return RubricGuideline.objects.filter(rubric=rubric_id).order_by("-number").first()
