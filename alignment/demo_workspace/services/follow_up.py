"""What workers and team make of the demo's production: the experiment, alerts.

NB: issues are found by the workers once the demo is served: it takes them longer than all the rest.
"""

from django.db import transaction

from alignment.alerts.services.acts import alert_acknowledge
from alignment.demo_workspace.services.history import People
from alignment.experiments.queries.counting import new_runs
from alignment.experiments.services import ExperimentSettings, experiment_change
from alignment.experiments.worker import EXPERIMENTS, count_work, run_note
from alignment.models.alerts import Alert
from alignment.models.experiments import Experiment

CONTROL = "control"


def experiment_ensure(people: People) -> None:
    """Count the experiment; the lead has chosen its control."""
    for run in new_runs():
        run_note(run)
    for row in Experiment.objects.filter(updated_at=None):
        _count(row)
        experiment_change(row=row, settings=ExperimentSettings(CONTROL), by=people.lead)
        _count(row)


def _count(row: Experiment) -> None:
    """Count it to the end: a worker stops after a while, so that others have their turn."""
    EXPERIMENTS.reopen_abandoned()
    while Experiment.objects.filter(pk=row.pk, state=Experiment.State.DUE).exists():
        count_work(row.pk)


@transaction.atomic
def alerts_ensure(people: People) -> None:
    """Let the lead acknowledge the alert on the judge; the newest others wait."""
    seen = Alert.objects.standing().filter(cause=Alert.Cause.JUDGE, acknowledged_at=None)
    if (alert := seen.order_by("pk").first()) is not None:
        alert_acknowledge(alert=alert, by=people.lead)
