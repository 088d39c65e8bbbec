"""Cluster a week's failing chats and store them as issues, new ones and those of earlier weeks."""

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from django.db import transaction
from django.db.models import Max, Min, Q
from django.utils import timezone

from alignment.issues.core.clusters import FEWEST_TEXTS, Cluster, Corpus, Place, closest, clusters_of
from alignment.issues.core.identity import Found, Known, match_clusters
from alignment.issues.core.naming import name_of
from alignment.issues.queries.texts import Failing, WeekTexts, runs_of_week, week_texts, weeks_judged
from alignment.issues.worker.embedding import week_meanings
from alignment.models.issues import Issue, IssueChat, IssueScan, IssueWeek
from common.models import Comment
from evaluation.models.runs import WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows, has_living_worker
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost
from labeling.models.people import Workspace

log = logging.getLogger(__name__)

FIND = "alignment.tasks.find_issues"
ROWS_AT_ONCE = 1_000
FEWEST_ALONE = 2  # chats of an issue in a week in which they form no cluster
POISON = f"the worker process died {MOST_TRIES} times while it clustered this week"
_State = IssueScan.State


class _Scans(LeasedRows[IssueScan]):
    model = IssueScan
    task = FIND
    open_state = _State.OPEN
    working_state = _State.WORKING

    def fail(self, row: IssueScan) -> None:
        row.state, row.error, row.lease, row.finished_at = _State.FAILED, POISON, None, timezone.now()
        row.save()

    def log_death(self, row: IssueScan) -> None:
        log.warning("the issues of %s are searched again: the worker died", row.week)

    def must_wait(self, row: IssueScan) -> bool:
        """Whether another week is at work, or an earlier one waits: weeks build on each other."""
        others = IssueScan.objects.exclude(pk=row.pk).select_related("lease")
        if others.filter(state=_State.OPEN, week__lt=row.week).exists():
            return True
        return any(map(has_living_worker, others.filter(state=_State.WORKING)))


SCANS = _Scans()


def scan_work(scan_id: int) -> None:
    """Cluster one week; do nothing unless its scan is open."""
    with SCANS.work(scan_id) as (row, lease):
        if row is not None:
            _scan(row, lease)


def scans_sweep() -> None:
    """Enqueue the weeks that wait."""
    SCANS.sweep()


def issues_work() -> None:
    """Open a scan of each of the newest weeks that has other finished runs than at its last scan."""
    for week in _weeks_due():
        scan_open(week)


def issues_find() -> int:
    """Cluster at once, in this process, what `issues_work` leaves to workers; return the number of weeks."""
    weeks = _weeks_due()
    for week in weeks:
        scan_work(_opened(week).pk)
    return len(weeks)


def _weeks_due() -> list[date]:
    """The newest weeks that have other finished runs than at their last scan, the earliest first."""
    judged = weeks_judged()
    known = dict(IssueScan.objects.filter(week__in=judged).values_list("week", "runs"))
    return [week for week, runs in judged.items() if known.get(week) != runs]


def scan_open(week: date) -> IssueScan:
    """Open the scan of a week and enqueue it; one that waits already stays."""
    row = _opened(week)
    transaction.on_commit(lambda: SCANS.enqueue(row.pk), robust=True)
    return row


def _opened(week: date) -> IssueScan:
    row, new = IssueScan.objects.get_or_create(week=week)
    if not new:
        done = IssueScan.objects.filter(pk=row.pk, state__in=(_State.DONE, _State.FAILED))
        done.update(state=_State.OPEN, error="", tries=0, rung_at=None)
    return row


# ---------- one week ----------


@dataclass
class Part:
    """The chats of an issue in the week: positions of texts with closeness and bits."""

    cluster: Cluster | None = None
    members: list[tuple[int, float, int]] = field(default_factory=list)


def _scan(scan: IssueScan, lease: WorkerLease) -> None:
    key = bytes(Workspace.current().fence_secret)
    runs, found = runs_of_week(scan.week), week_texts(scan.week)
    try:
        known = week_meanings([one.text for one in found.texts], lease_id=lease.pk)
    except LeaseLost:
        log.warning("the issues of %s were taken over", scan.week)
        return
    corpus = Corpus.of(found.texts, meanings=known.meanings, key=key)
    clusters = clusters_of(corpus, key=key)
    alone = _alone(found, clusters)
    near = closest(corpus, alone, _places(scan.week), key=key)
    with transaction.atomic():
        # NB: weeks are stored one after the other, so that no issue is created twice.
        Workspace.objects.select_for_update(no_key=True).get()
        if SCANS.owned(scan.pk, lease).first() is None:
            return
        parts = _parts(scan.week, found, clusters)
        _add_alone(parts, found, near)
        _store(scan.week, parts, found)
        scan.runs, scan.chats = runs, len({one.chat for one in found.failing})
        scan.verdicts, scan.clustered = found.total, sum(len(one.members) for one in parts.values())
        scan.few, scan.embedding_model, scan.fallback = _few(found), known.model, known.problem
        scan.state, scan.error, scan.lease, scan.finished_at = _State.DONE, "", None, timezone.now()
        scan.save()


def _few(found: WeekTexts) -> int:
    """Count the verdicts of criteria with too few of them to group."""
    counts = Counter(one.criterion for one in found.failing)
    return sum(count for count in counts.values() if count < FEWEST_TEXTS)


def _alone(found: WeekTexts, clusters: Sequence[Cluster]) -> list[int]:
    taken = {member for one in clusters for member in one.members}
    return [number for number in range(len(found.texts)) if number not in taken]


def _centroids(**weeks: date) -> dict[int, Mapping[str, float]]:
    """The newest centroid of each issue, in weeks of a filter."""
    rows = IssueWeek.objects.filter(**weeks).exclude(centroid={}).order_by("week")
    return dict(rows.values_list("issue", "centroid"))


def _places(week: date) -> dict[int, Place]:
    """Where single texts may belong: the issues of earlier weeks that are not merged."""
    centroids = _centroids(week__lt=week)
    rows = Issue.objects.filter(pk__in=centroids, merged_into=None).values_list("pk", "criterion")
    return {pk: Place(criterion, centroids[pk]) for pk, criterion in rows}


def _parts(week: date, found: WeekTexts, clusters: Sequence[Cluster]) -> dict[int, Part]:
    """Match the clusters to issues by criterion; create new issues, store merged and split ones."""
    centroids = _centroids()
    issues = list(Issue.objects.filter(pk__in=centroids))
    own: dict[int, set[int]] = defaultdict(set)
    for issue, chat in IssueChat.objects.filter(week=week).values_list("issue", "chat"):
        own[issue].add(chat)
    parts: dict[int, Part] = {}
    for criterion in sorted({one.group for one in clusters}):
        here = [one for one in clusters if one.group == criterion]
        known = [
            Known(row.pk, centroids[row.pk], frozenset(own[row.pk]), row.merged_into_id)
            for row in issues
            if row.criterion_id == criterion
        ]
        chats = [frozenset(found.failing[member].chat for member in one.members) for one in here]
        matches = match_clusters(
            [Found(one.centroid, ids) for one, ids in zip(here, chats, strict=True)], known
        )
        ids = [pk or _new(cluster, found).pk for pk, cluster in zip(matches.issues, here, strict=True)]
        for pk, cluster in zip(ids, here, strict=True):
            members = zip(cluster.members, cluster.closeness, cluster.bits, strict=True)
            parts[pk] = Part(cluster, list(members))
        Issue.objects.filter(pk__in=matches.apart).update(merged_into=None, merged_week=None)
        for pk, position in matches.merged.items():
            Issue.objects.filter(Q(pk=pk) | Q(merged_into=pk)).update(
                merged_into=ids[position], merged_week=week
            )
    return parts


def _new(cluster: Cluster, found: WeekTexts) -> Issue:
    failing = [found.failing[member] for member in cluster.members]
    row = Issue.objects.create(
        criterion_id=cluster.group, topic_id=_topic(failing), name=name_of(cluster.terms, otherwise="-")
    )
    if not cluster.terms:
        Issue.objects.filter(pk=row.pk).update(name=f"Issue {row.pk}")
    return row


def _topic(failing: Sequence[Failing]) -> int:
    counts = Counter(one.topic for one in failing)
    return min(counts, key=lambda topic: (-counts[topic], topic))


def _add_alone(parts: dict[int, Part], found: WeekTexts, near: Mapping[int, tuple[int, float]]) -> None:
    """Add single texts to the issues that they are close to."""
    roots = dict(Issue.objects.exclude(merged_into=None).values_list("pk", "merged_into"))
    by_issue: dict[int, list[tuple[int, float, int]]] = defaultdict(list)
    for position, (pk, closeness) in near.items():
        by_issue[roots.get(pk) or pk].append((position, closeness, 0))
    for pk, members in by_issue.items():
        if pk in parts or len(members) >= FEWEST_ALONE:
            parts.setdefault(pk, Part()).members += members


# ---------- storing ----------


def _store(week: date, parts: Mapping[int, Part], found: WeekTexts) -> None:
    """Replace the week's chats, and bring the issues up to date."""
    before = set(IssueWeek.objects.filter(week=week).values_list("issue", flat=True))
    IssueChat.objects.filter(week=week).delete()
    IssueWeek.objects.filter(week=week).delete()
    IssueWeek.objects.bulk_create(
        IssueWeek(
            issue_id=pk,
            week=week,
            chats=len(part.members),
            terms=list(part.cluster.terms) if part.cluster else [],
            centroid=dict(part.cluster.centroid) if part.cluster else {},
        )
        for pk, part in sorted(parts.items())
    )
    IssueChat.objects.bulk_create(
        (
            IssueChat(
                issue_id=pk,
                week=week,
                chat_id=found.failing[position].chat,
                verdict_id=found.failing[position].verdict,
                closeness=closeness,
                bits=bits,
            )
            for pk, part in sorted(parts.items())
            for position, closeness, bits in part.members
        ),
        batch_size=ROWS_AT_ONCE,
    )
    _refresh(before | set(parts))
    for pk, part in parts.items():
        _renew(pk, week, [found.failing[position] for position, *_ in part.members])


def _refresh(ids: set[int]) -> None:
    """Set first and newest week; delete issues without chats on which nobody has worked."""
    for row in Issue.objects.filter(pk__in=ids):
        weeks = row.weeks.aggregate(first=Min("week"), last=Max("week"))
        row.first_week, row.last_week = weeks["first"], weeks["last"]
        discussed = Comment.objects.filter(subject=f"issue:{row.pk}").exists()
        merged = row.merged_into_id is not None or row.merged.exists()
        if weeks["last"] or row.touched or discussed or merged or row.namings.exists():
            row.save(update_fields=["first_week", "last_week"])
        else:
            row.delete()


def _renew(pk: int, week: date, failing: Sequence[Failing]) -> None:
    """Set the topic and the name by its terms; reopen an issue that was fixed in an earlier week."""
    row = Issue.objects.get(pk=pk)
    if row.last_week == week:
        row.topic_id = _topic(failing)
        terms = row.weeks.get(week=week).terms
        if row.name_by == Issue.NameBy.TERMS and terms:
            row.name = name_of(terms, otherwise=row.name)
    if row.state == Issue.State.FIXED and row.fixed_week and week > row.fixed_week:
        row.state, row.returned, row.fixed_week = Issue.State.OPEN, True, None
    row.save(update_fields=["topic", "name", "state", "returned", "fixed_week"])
