"""A lead's tasks: one line a thing, in a constant number of queries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Max, Min, OuterRef, Subquery
from django.urls import reverse
from django.utils import timezone

from alignment.alerts.queries.alerts import alert_rows, open_alerts
from alignment.certificates.queries.certificates import certificate_states, certificate_whole
from alignment.certificates.queries.page import title
from alignment.home.core import days_in_words
from alignment.home.queries.glance import GlanceRow
from alignment.misalignments.queries.misalignment_list import misalignments_listed, runs_with_own_chats
from alignment.models.certificates import Certificate
from alignment.models.misalignments import Misalignment
from alignment.models.regressions import RegressionTest, ReleaseRequest
from alignment.models.requests import RedesignProposal
from alignment.prompts.queries.versions import VersionRow
from alignment.reports.core.status import Status
from alignment.reports.queries.label_minimums import label_minimums
from alignment.statistics.label_needs import Decision, need_of
from evaluation.gateway.budget import BUDGET_REACHED
from evaluation.models.runs import Run, Unit, error_in_words
from labeling.adjudication.queries.queue import Filters, Kind, queue_items
from labeling.models.labels import Label
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline, TextVersion
from labeling.rating.queries.notes import notes_for

ONE_BY_ONE = 3  # things of a kind with a line each; more of them share one line
WORST = 3  # criteria with open disagreements that are listed
ENDS_SOON = timedelta(days=14)
ENDED_LATELY = timedelta(days=30)
CERTIFICATES = 20  # newest ones that are looked at


@dataclass(frozen=True, slots=True)
class Task:
    """One line: kind, subject and sentence, a note, since or until when, and one action."""

    kind: str
    subject: str
    text: str
    action: str
    url: str
    at: datetime | None = None
    note: str = ""

    @property
    def when(self) -> str:
        """How long ago, or in how many days; '' if unknown."""
        if self.at is None:
            return ""
        today, day = timezone.localdate(), timezone.localtime(self.at).date()
        return days_in_words((today - day).days)


def lead_tasks(rows: Sequence[GlanceRow], *, user: User) -> list[Task]:
    """Return what waits for a lead, the most urgent kind first."""
    tasks: list[Task] = []
    if user.has_perm("labeling.see_judge"):
        asked = _release_requests()
        tasks += [*_alerts(user), *_paused_runs(), *asked, *_gate_results(rows)]
    tasks += _adjudications(user)
    if user.has_perm("labeling.see_judge"):
        tasks += [*_disagreements(user), *_missing_labels(rows), *_certificates()]
    return [*tasks, *_wordings(), *_redesigns(), *_notes(user)]


def _few(tasks: Sequence[Task], whole: Callable[[], Task]) -> list[Task]:
    """Return a line each, or one line for all where there are many."""
    return list(tasks) if len(tasks) <= ONE_BY_ONE else [whole()]


def _alerts(user: User) -> list[Task]:
    rows = alert_rows(list(open_alerts()), user=user)
    tasks = [
        Task(
            "Alert",
            row.about,
            f"{row.words[:1].lower()}{row.words[1:]}.",
            "Open alert",
            reverse("alerts:detail", args=[row.alert.pk]),
            row.alert.raised_at,
            row.detail,
        )
        for row in rows
    ]
    newest = rows[0].alert.raised_at if rows else None
    return _few(
        tasks,
        lambda: Task(
            "Alerts", f"{len(rows)} alerts", "are open.", "Open alerts", reverse("alerts:list"), newest
        ),
    )


def _paused_runs() -> list[Task]:
    runs = list(
        Run.objects.filter(state=Run.State.PAUSED)
        .exclude(purpose=Run.Purpose.TRY)
        .select_related("judge", "chat_set")
        .order_by("-pk")
    )
    last = dict(
        Unit.objects.filter(run__in=[run.pk for run in runs[:ONE_BY_ONE]])
        .order_by()
        .values_list("run")
        .annotate(at=Max("finished_at"))
    )
    tasks = [_paused(run, last.get(run.pk)) for run in runs]
    url = reverse("evaluation:run_list", query={"state": Run.State.PAUSED.value})
    return _few(
        tasks,
        lambda: Task(
            "Runs paused",
            f"{len(runs)} runs",
            f"are paused, the newest is run {runs[0].pk}.",
            "Open runs",
            url,
        ),
    )


def _paused(run: Run, at: datetime | None) -> Task:
    reason = error_in_words(run.error).rstrip(".") or "it was paused"
    where = run.chat_set.name if run.chat_set else ""
    return Task(
        "Run paused",
        f"Run {run.pk}",
        f"stopped at {run.units_done:,} of {run.units_total:,}: {reason}.",
        "Add budget" if run.error.startswith(BUDGET_REACHED) else "Open run",
        reverse("evaluation:run_detail", args=[run.pk]),
        at or run.created_at,
        ", ".join(part for part in (run.judge.name, where) if part),
    )


def _candidate(test: RegressionTest) -> str:
    if test.candidate is None:
        return f"Judge {test.candidate_run.judge.name}"
    return f"{test.candidate.criterion.name} v{test.candidate.number}"


def _release_requests() -> list[Task]:
    rows = list(
        ReleaseRequest.objects.filter(answer=ReleaseRequest.Answer.OPEN)
        .select_related("by", "regression__candidate__criterion", "regression__candidate_run__judge")
        .order_by("pk")
    )
    tasks = [
        Task(
            "Release asked",
            _candidate(row.regression),
            f"{_result(row.regression)} test {row.regression_id}.",
            "Review release",
            reverse("alignment:regression_detail", args=[row.regression_id]),
            row.at,
            f"Asked by {row.by.get_username()}",
        )
        for row in rows
    ]
    url = reverse("alignment:regression_list")
    return _few(
        tasks,
        lambda: Task(
            "Releases asked", f"{len(rows)} requests", "wait for a lead.", "Open tests", url, rows[0].at
        ),
    )


def _result(test: RegressionTest) -> str:
    words = {"pass": "passed", "fail": "failed", "inconclusive": "was inconclusive in"}
    return words.get(test.result, "waits for")


def _gate_results(rows: Sequence[GlanceRow]) -> list[Task]:
    """Return decided tests of versions that wait for a release, or for an override; asked ones are listed."""
    asked = set(ReleaseRequest.objects.filter(answer="open").values_list("regression", flat=True))
    found = [
        (row.criterion, version, test)
        for row in rows
        for version in row.row.versions
        if (test := _waiting_test(version)) is not None and test.pk not in asked
    ]
    tasks = [_gate_result(criterion, version, test) for criterion, version, test in found]
    url = reverse("alignment:regression_list")
    return _few(
        tasks,
        lambda: Task(
            "Gate results",
            f"{len(tasks)} versions",
            "wait for a decision after their test.",
            "Open tests",
            url,
        ),
    )


def _waiting_test(version: VersionRow) -> RegressionTest | None:
    """Return the newest test of a version if it can be released on it, or by an override."""
    if version.passed is not None:
        return version.passed
    newest = next((test for test in version.tests if test.state != RegressionTest.State.CANCELLED), None)
    undecided = newest is not None and newest.result == RegressionTest.Result.INCONCLUSIVE
    return newest if undecided and version.waits and not version.outdated else None


def _gate_result(criterion: Criterion, version: VersionRow, test: RegressionTest) -> Task:
    passed = test.result == RegressionTest.Result.PASS
    text = f"{_result(test)} test {test.pk}: " + (
        "it can be released." if passed else "test it on more labels, or override."
    )
    url = reverse("alignment:regression_detail", args=[test.pk])
    return Task(
        "Gate result",
        f"{criterion.name} v{version.number}",
        text,
        "Review release" if passed else "Open test",
        url,
        test.finished_at,
    )


def _adjudications(user: User) -> list[Task]:
    """Return one line for the pairs of chat and criterion without a consensus."""
    labels = Label.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion")).given()
    newest = labels.order_by().values("chat").annotate(at=Max("given_at")).values("at")
    pairs = queue_items(filters=Filters(kind=Kind.UNRESOLVED), user=user).order_by()
    counts = list(
        pairs.annotate(given=Subquery(newest))
        .values_list("criterion")
        .annotate(n=Count("pk"), at=Min("given"))
    )
    if not counts:
        return []
    total = sum(n for _, n, _ in counts)
    worst, most, _ = max(counts, key=lambda row: (row[1], -row[0]))
    criterion = Criterion.objects.get(pk=worst)
    among = (
        f", {most} of them on {criterion.name.lower()}"
        if len(counts) > 1
        else f" on {criterion.name.lower()}"
    )
    plural = "s" if total != 1 else ""
    url = reverse("labeling:adjudication_queue", query={"kind": Kind.UNRESOLVED.value})
    since = min((at for *_, at in counts if at), default=None)
    return [
        Task(
            "Adjudication",
            f"{total:,} answer{plural}",
            f"without a consensus{among}.",
            "Adjudicate",
            url,
            since,
        )
    ]


def _disagreements(user: User) -> list[Task]:
    """Return a line for each of the criteria with most disagreements without a cause, critical ones first."""
    shown = misalignments_listed(user=user, without=runs_with_own_chats(user=user))
    kinds = (
        shown.exclude(state=Misalignment.State.CLOSED)
        .order_by()
        .values_list("criterion", "cause", "newest_run")
    )
    counts: dict[int, _Disagreements] = {}
    for criterion, cause, run, n in kinds.annotate(n=Count("pk")):
        found = counts.setdefault(criterion, _Disagreements())
        found.all += n
        found.untriaged += 0 if cause else n
        found.runs |= set() if cause else {run}
    rows = [row for row in Criterion.objects.filter(pk__in=counts) if counts[row.pk].untriaged]
    rows.sort(key=lambda row: (not row.critical, -counts[row.pk].untriaged, row.pk))
    worst = rows[:WORST]
    oldest = {row.pk: min(counts[row.pk].runs) for row in worst}
    ended = dict(Run.objects.filter(pk__in=oldest.values()).values_list("pk", "finished_at"))
    return [_disagreement(row, counts[row.pk], ended.get(oldest[row.pk]), user) for row in worst]


@dataclass(slots=True)
class _Disagreements:
    """Open disagreements of a criterion, those without a cause, and the runs that saw these last."""

    all: int = 0
    untriaged: int = 0
    runs: set[int] = field(default_factory=set)


def _disagreement(row: Criterion, found: _Disagreements, at: datetime | None, user: User) -> Task:
    notes = ("Critical" if row.critical else "", "Assigned to you" if row.owner_id == user.pk else "")
    return Task(
        "Disagreements",
        f"{found.untriaged:,} of {found.all:,}",
        f"on {row.name.lower()} {'has' if found.untriaged == 1 else 'have'} no cause.",
        "Decide causes",
        reverse("alignment:misalignment_list", query={"criterion": row.key, "cause": "none"}),
        at,
        ", ".join(filter(None, notes)),
    )


def _missing_labels(rows: Sequence[GlanceRow]) -> list[Task]:
    """Return one line for the criteria of the newest run that lack labels for a status."""
    few = [row for row in rows if row.status == Status.NOT_ENOUGH_LABELS and row.newest is not None]
    if not few:
        return []
    minimums, lacking = label_minimums(), []
    for row in few:
        if row.newest is None:
            continue
        need = need_of(Decision.STATUS, row.newest.label_counts, minimums)
        if not need.met and need.applies:
            lacking.append((row, row.newest, need))
    if not lacking:
        return []
    row, newest, need = lacking[0]
    n = len(lacking)
    subject = row.criterion.name if n == 1 else f"{n} criteria"
    text = f"needs {need.missing_chats:,} more labelled chats for a status: {need.sentence}."
    if n > 1:
        text = f"lack labels for a status. {row.criterion.name}: {need.sentence}."
    url = reverse("alignment:label_plan", args=[newest.run.pk], query={"criterion": row.criterion.key})
    return [Task("Labels missing", subject, text, "Plan labels", url, note=newest.where)]


def _certificates() -> list[Task]:
    """Return the certificates that end soon or ended lately, of each set and split the newest."""
    now = timezone.now()
    newest: dict[tuple[int | None, str], Certificate] = {}
    for row in certificate_whole().filter(revoked_at=None)[:CERTIFICATES]:
        newest.setdefault((row.report.chat_set_id, row.report.split), row)
    states = certificate_states(list(newest.values()), today=False)
    tasks = []
    for row in newest.values():
        state = states[row.pk]
        url = reverse("alignment:certificate_detail", args=[row.pk])
        if state.holds and row.expires_at <= now + ENDS_SOON:
            until = f"permits its uses until {timezone.localtime(row.expires_at):%-d %B}."
            tasks.append(Task("Certificate ends", title(row), until, "Open certificate", url, row.expires_at))
        elif not state.holds and row.expires_at > now - ENDED_LATELY:
            more = f", and {len(state.reasons) - 1} more" if len(state.reasons) > 1 else ""
            reason = f"no longer permits any use: {state.reasons[0]}{more}."
            at = row.expires_at if row.expires_at <= now else None
            tasks.append(Task("Certificate ended", title(row), reason, "Open certificate", url, at))
    url = reverse("alignment:certificate_list")
    return _few(
        tasks,
        lambda: Task(
            "Certificates", f"{len(tasks)} certificates", "ended or end soon.", "Open certificates", url
        ),
    )


def _wordings() -> list[Task]:
    asked = TextVersion.Wording.ASKED
    texts = CriterionVersion.objects.filter(wording=asked, criterion__state=Criterion.State.ACTIVE)
    tasks = [
        _wording(row.criterion.name, row, reverse("labeling:criterion_text", args=[row.criterion.key]))
        for row in texts.select_related("criterion", "created_by").order_by("pk")
    ]
    guidelines = RubricGuideline.objects.filter(wording=asked).select_related("rubric", "created_by")
    tasks += [
        _wording(
            f"Guideline of {row.rubric.name}", row, reverse("labeling:guideline_detail", args=[row.rubric_id])
        )
        for row in guidelines.order_by("pk")
    ]
    url = reverse("labeling:guideline_list")
    return _few(
        tasks,
        lambda: Task(
            "Wording",
            f"{len(tasks)} text changes",
            "wait for a lead: same meaning or a new one?",
            "Open guidelines",
            url,
        ),
    )


def _wording(name: str, row: TextVersion, url: str) -> Task:
    by = row.created_by.get_username() if row.created_by else ""
    text = f"version {row.number}: did only the wording change?"
    return Task(
        "Wording", name, text, "Confirm or refuse", url, row.created_at, f"Changed by {by}" if by else ""
    )


def _redesigns() -> list[Task]:
    rows = RedesignProposal.objects.filter(answer=RedesignProposal.Answer.OPEN).select_related(
        "by", "criterion"
    )
    tasks = [
        Task(
            "Redesign proposed",
            row.criterion.name,
            "should be split, merged or replaced.",
            "Read proposal",
            f"{reverse('alignment:criterion_detail', args=[row.criterion.key])}#proposals",
            row.at,
            f"Proposed by {row.by.get_username()}",
        )
        for row in rows.order_by("pk")
    ]
    url = reverse("alignment:criterion_list")
    return _few(
        tasks,
        lambda: Task(
            "Redesigns", f"{len(tasks)} criteria", "have a proposed redesign.", "Open criteria", url
        ),
    )


def _notes(user: User) -> list[Task]:
    found = (
        notes_for(user=user).filter(settled_at=None).order_by().aggregate(n=Count("pk"), at=Max("created_at"))
    )
    if not found["n"]:
        return []
    n = found["n"]
    text = f"of raters {'is' if n == 1 else 'are'} open."
    url = reverse("labeling:note_list")
    return [Task("Rater notes", f"{n:,} note{'' if n == 1 else 's'}", text, "Answer", url, found["at"])]
