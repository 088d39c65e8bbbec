"""Celery tasks of the alignment side, and the one sweep that finds all work left to do."""

import logging
from functools import partial

from celery import shared_task

from alignment.alerts.services.evaluation import alerts_work
from alignment.archive.worker import ARCHIVE, archive_work, archives_sweep
from alignment.baselines.worker import TRAIN, training_work, trainings_sweep
from alignment.experiments.worker import COUNT, count_work, experiments_sweep
from alignment.issues.worker.naming import NAME, NAMINGS
from alignment.issues.worker.scan import FIND, issues_work, scan_work, scans_sweep
from alignment.misalignments.worker import disagreements_sweep
from alignment.monitoring.services import audits_work
from alignment.nightly_labels.services import night_jobs_work
from alignment.prompts.queries.version_metrics import version_counts_store
from alignment.prompts.suggestions.worker import SUGGEST, SUGGESTIONS
from alignment.regression.worker import regressions_sweep
from alignment.reports.worker import REFRESH, refresh_work, reports_sweep
from alignment.retention.services import retention_sweep
from alignment.rubric_drafts.worker import DRAFT, DRAFTS
from alignment.topic_prompt.worker import GIVE, topics_sweep, topics_work
from common.inbox.services import inbox_sweep
from evaluation.call_counts.services import calls_count
from evaluation.nightly.services import nights_work
from evaluation.runs.worker.enqueue import sweep_runs
from evaluation.tasks import HARD_SECONDS, SOFT_SECONDS
from evaluation.webhooks.worker import webhooks_sweep
from labeling.ingest.services.chats import ingest_sweep
from labeling.jobs.services import jobs_sweep
from labeling.people.services.mail_sending import mails_sweep
from labeling.people.services.sign_in_log import sign_ins_forget
from labeling.transfer.services.work import imports_sweep

log = logging.getLogger(__name__)

# A task that works on one row; the message of a lost worker comes again.
row_task = partial(
    shared_task,
    acks_late=True,
    reject_on_worker_lost=True,
    soft_time_limit=SOFT_SECONDS,
    time_limit=HARD_SECONDS,
)

# The quick ones first; each finds what is left to do in the database.
SWEEPS = (
    sweep_runs,
    webhooks_sweep,
    regressions_sweep,
    SUGGESTIONS.sweep,
    DRAFTS.sweep,
    NAMINGS.sweep,
    scans_sweep,
    trainings_sweep,
    disagreements_sweep,
    reports_sweep,
    archives_sweep,
    experiments_sweep,
    jobs_sweep,
    imports_sweep,
    ingest_sweep,
    topics_sweep,
    retention_sweep,
    calls_count,
    sign_ins_forget,
    # Last: a mail server may take seconds.
    mails_sweep,
    inbox_sweep,
)


@shared_task(name="alignment.tasks.sweep")  # type: ignore[untyped-decorator]  # celery has no types
def sweep() -> None:
    """Find all work that waits, on whatever feature: what a broker lost or a dead worker held."""
    for part in SWEEPS:
        try:
            part()
        except Exception:
            # One part that fails must not hold up the others.
            log.exception("%r failed", part)


# At night, every ten minutes: a sample of a million chats takes seconds, so that the sweep need not wait.
NIGHTLY = (nights_work, night_jobs_work, audits_work, alerts_work, issues_work)


@shared_task(name="alignment.tasks.nightly", time_limit=HARD_SECONDS)  # type: ignore[untyped-decorator]
def nightly() -> None:
    """Sample due days, start their judges, open raters' jobs, count labels, raise alerts, find issues."""
    for part in NIGHTLY:
        try:
            part()
        except Exception:
            log.exception("%r failed", part)


@row_task(name=SUGGEST)  # type: ignore[untyped-decorator]  # celery has no types
def suggest(suggestion_id: int) -> None:
    """Ask for one suggestion; a second message for it finds nothing to do."""
    SUGGESTIONS.answer(suggestion_id)


@row_task(name=DRAFT)  # type: ignore[untyped-decorator]  # celery has no types
def draft_definition(draft_id: int) -> None:
    """Ask for one definition; a second message for it finds nothing to do."""
    DRAFTS.answer(draft_id)


@row_task(name=GIVE)  # type: ignore[untyped-decorator]  # celery has no types
def give_topics(row_id: int) -> None:
    """Give topics to chats for one time slice; a second message finds nothing to do."""
    topics_work(row_id)


@row_task(name=FIND)  # type: ignore[untyped-decorator]  # celery has no types
def find_issues(scan_id: int) -> None:
    """Cluster one week's failing chats; a second message for it finds nothing to do."""
    scan_work(scan_id)


@row_task(name=NAME)  # type: ignore[untyped-decorator]  # celery has no types
def name_issue(naming_id: int) -> None:
    """Ask for the name of one issue; a second message for it finds nothing to do."""
    NAMINGS.answer(naming_id)


@row_task(name=TRAIN)  # type: ignore[untyped-decorator]  # celery has no types
def train(training_id: int) -> None:
    """Train one bag of words; a second message for it finds nothing to do."""
    training_work(training_id)


@row_task(name=REFRESH)  # type: ignore[untyped-decorator]  # celery has no types
def refresh_report(refresh_id: int) -> None:
    """Compute one report, and the counts of its run by prompt version; a second message finds nothing."""
    run = refresh_work(refresh_id)
    if run is not None:
        version_counts_store(run)


@row_task(name=ARCHIVE)  # type: ignore[untyped-decorator]  # celery has no types
def make_archive(archive_id: int) -> None:
    """Make one archive of the workspace; a second message for it finds nothing to do."""
    archive_work(archive_id)


@row_task(name=COUNT)  # type: ignore[untyped-decorator]  # celery has no types
def count_experiment(experiment_id: int) -> None:
    """Count one experiment; a second message for it finds nothing to do."""
    count_work(experiment_id)
