"""The labels that today's policies require."""

from alignment.models.regressions import Policy
from alignment.reports.queries.reports import POLICY
from alignment.statistics.label_needs import START_VALUES, Minimums


def label_minimums() -> Minimums:
    """Return what the status policy and the gate's current policy require; one query."""
    gate = Policy.objects.revised()
    limits = gate.parameters if gate else {}
    return Minimums(
        status_true=POLICY.minimum_true,
        status_false=POLICY.minimum_false,
        gate_alone=limits.get("single_minimum", START_VALUES.gate_alone),
    )
