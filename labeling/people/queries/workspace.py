"""Workspace settings that reports depend on."""

from labeling.models.people import Workspace


def subjective_in_session_score() -> bool:
    """Whether subjective criteria count in session scores; one query."""
    return Workspace.objects.filter(subjective_in_session_score=True).exists()
