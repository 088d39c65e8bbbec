"""What workers and team make of the demo's production: issues, the experiment, alerts."""

import json

from django.db import transaction
from django.db.models import Sum

from alignment.alerts.services.acts import alert_acknowledge
from alignment.demo_workspace.services.demo_workspace import DEMO
from alignment.demo_workspace.services.history import People
from alignment.experiments.queries.counting import new_runs
from alignment.experiments.services import ExperimentSettings, experiment_change
from alignment.experiments.worker import EXPERIMENTS, count_work, run_note
from alignment.issues.services import IssueChange, issue_change
from alignment.issues.worker.scan import issues_find
from alignment.models.alerts import Alert
from alignment.models.experiments import Experiment
from alignment.models.issues import Issue

CONTROL = "control"


def issues_ensure(people: People, week: int) -> None:
    """Cluster the failing chats of the weeks up to this one; author and lead work on the largest issues."""
    issues_find()
    for one in json.loads((DEMO / "issues.json").read_text(encoding="utf-8")):
        rows = Issue.objects.filter(criterion__key=one["criterion"], merged_into=None)
        largest = rows.annotate(size=Sum("weeks__chats")).order_by("-size", "pk").first()
        if one["week"] == week and largest is not None:
            fields = ("state", "owner", "note", "name")
            change = IssueChange(**{name: one[name] for name in fields if name in one})
            issue_change(issue=largest, change=change, seen=largest.revision, by=people.lead)


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
