"""Workspace settings that reports and pages depend on."""

from labeling.models.people import Workspace


def subjective_in_session_score() -> bool:
    """Whether subjective criteria count in session scores; one query."""
    return Workspace.objects.filter(subjective_in_session_score=True).exists()


def set_up_hidden() -> bool:
    """Whether a lead has hidden the list of set-up steps on Home; one query."""
    return Workspace.objects.filter(set_up_hidden=True).exists()
