"""Weeks of failing chats with planted problems, found issues, and an issue as rows."""

from collections.abc import Mapping
from datetime import date, timedelta

from django.utils import timezone

from alignment.issues.worker.scan import SCANS, issues_work, scan_work
from alignment.models.issues import Issue, IssueChat, IssueScan, IssueWeek
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import Chat, Topic
from labeling.models.rubric import Criterion, Rubric
from tests.factories.issue_texts import Planted, planted
from tests.factories.production import Judged, production_day

WEEK = date(2026, 11, 2)


def failing_week(
    number: int,
    counts: Mapping[str, int],
    *,
    judge: Judge,
    rubric: Rubric,
    noise: int = 15,
    seed: int | None = None,
) -> list[Planted]:
    """Judge a sample of a week after WEEK: chats that fail for these problems, some for others, some pass."""
    rows = planted(dict(counts), noise=noise, seed=number if seed is None else seed)
    day = WEEK + timedelta(weeks=number, days=1)
    run = production_day(day, {"mixed": Judged(len(rows) + 10, 10, len(rows))}, judge=judge, rubric=rubric)
    names = {row.topic for row in rows}
    topics = {name: Topic.objects.get_or_create(key=name, defaults={"name": name})[0] for name in names}
    criterion = rubric.criteria.order_by("pk")[0]
    passes_when = criterion.versions.get().passes_when
    verdicts = Verdict.objects.filter(run=run, criterion=criterion, value=not passes_when).order_by("pk")
    Verdict.objects.filter(run=run).exclude(criterion=criterion).update(value=passes_when)
    for verdict, row in zip(verdicts, rows, strict=True):
        Verdict.objects.filter(pk=verdict.pk).update(rationale=f'{row.text} [m2: "on its way"]')
        Chat.objects.filter(pk=verdict.chat_id).update(topic=topics[row.topic])
    return rows


def find_issues() -> None:
    """What the workers do: open the scans that are due, and work them off, the earliest week first."""
    issues_work()
    for pk in SCANS.waiting():
        IssueScan.objects.filter(pk=pk).update(rung_at=None)
    for scan in IssueScan.objects.filter(state="open").order_by("week"):
        scan_work(scan.pk)


def stored_issue(criterion: Criterion, chat: Chat, run: Run, *, text: str) -> int:
    """The id of an issue with this chat, in whose name, note and terms the text stands."""
    week = date(2026, 11, 2)
    row = Issue.objects.create(
        criterion=criterion,
        topic=chat.topic,
        name=f"{text}-issue",
        summary=f"{text}-summary",
        note=f"{text}-note",
        first_week=week,
        last_week=week,
    )
    IssueWeek.objects.create(issue=row, week=week, chats=1, terms=[f"{text}-term"], centroid={"a": 1.0})
    verdict = Verdict.objects.filter(run=run, chat=chat, criterion=criterion).first()
    if verdict is not None:
        IssueChat.objects.create(issue=row, week=week, chat=chat, verdict=verdict, closeness=0.9, bits=1)
    IssueScan.objects.update_or_create(
        week=week, defaults={"state": "done", "chats": 4, "finished_at": timezone.now()}
    )
    return row.pk
