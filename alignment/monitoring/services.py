"""Keeps the counts of the random audit: the worker joins labels and verdicts when labels arrive."""

import logging

from django.db import transaction
from django.utils import timezone

from alignment.models.audits import AuditCount, AuditNight
from alignment.monitoring.queries.audits import NightLabels, night_counts, night_labels
from labeling.models.sampling import SampleDraw

log = logging.getLogger(__name__)


def audits_work() -> None:
    """Count each night whose labels, decisions or holdout chats changed since it was counted."""
    stored = dict(AuditNight.objects.values_list("draw", "fingerprint"))
    for night in night_labels():
        if stored.get(night.draw) != night.fingerprint:
            try:
                audit_count(night)
            except Exception:
                log.exception("the audit of sample %s was not counted", night.draw)


@transaction.atomic
def audit_count(night: NightLabels) -> None:
    """Store the counts of a night in place of its earlier ones. Repeating it changes nothing."""
    # One worker a night; labels that arrive meanwhile change the fingerprint, so that it is counted again.
    SampleDraw.objects.select_for_update(no_key=True, of=("self",)).get(pk=night.draw)
    counts = night_counts(night)
    AuditNight.objects.filter(draw=night.draw).delete()
    row = AuditNight.objects.create(
        draw_id=night.draw,
        run_id=night.run,
        fingerprint=night.fingerprint,
        labelled=night.labelled,
        holdout=night.holdout,
        groups=counts.groups,
        counted_at=timezone.now(),
    )
    AuditCount.objects.bulk_create(
        AuditCount(night=row, part=part, cells=cells) for part, cells in counts.cells.items()
    )
