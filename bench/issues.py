"""A week with 20,000 failing chats: read, clustered, matched and stored by the worker."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta

from django.utils import timezone

from alignment.issues.worker.scan import scan_open, scan_work
from alignment.models.issues import IssueChat, IssueScan
from bench import Figure, peak_mb, timed
from evaluation.day_counts.services import days_recount
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.rubric import Rubric
from tests.factories.issue_texts import PROBLEMS, planted
from tests.factories.issues import WEEK
from tests.factories.rows import make_rubric
from tests.factories.verdicts import make_judge

CHATS, SECONDS, GROWTH_MB = 20_000, 60.0, 768.0


def figures() -> Iterator[Figure]:
    """The first scan of a week, and the same week again; three quarters of the chats have six problems."""
    stored_week()
    before = peak_mb()
    for name in ("first time", "again"):
        scan = scan_open(WEEK)
        spent = timed(lambda pk=scan.pk: scan_work(pk))  # type: ignore[misc]
        yield Figure(f"issues of {CHATS:,} failing chats, {name}", spent.wall, SECONDS, "s")
    yield Figure("peak memory of both", peak_mb() - before, GROWTH_MB, "MB more")
    scan = IssueScan.objects.get()
    found = IssueChat.objects.count()
    if scan.state != "done" or not 0.6 * CHATS < found < 0.85 * CHATS:
        raise RuntimeError(f"scan {scan.state}, {found} chats in issues")


def stored_week() -> None:
    """A finished run over a sample, each chat with a failing verdict."""
    rubric = make_rubric("polite")
    judge = make_judge(rubric)
    rows = planted(dict.fromkeys(PROBLEMS, CHATS // 8), noise=CHATS - 6 * (CHATS // 8), seed=1)
    topics = {key: Topic.objects.create(key=key, name=key) for key in {row.topic for row in rows}}
    at = datetime.combine(WEEK + timedelta(days=1), time(12), UTC)
    said = [{"n": 1, "role": "user", "content": "Where is my order?"}]
    chats = Chat.objects.bulk_create(
        (
            Chat(
                external_id=f"c{number}",
                topic=topics[row.topic],
                started_at=at,
                messages=said,
                content_hash=f"{number:064}",
                message_count=1,
                char_count=18,
            )
            for number, row in enumerate(rows)
        ),
        batch_size=1_000,
    )
    _judged(judge, rubric, chats, [row.text for row in rows])


def _judged(judge: Judge, rubric: Rubric, chats: Sequence[Chat], texts: Sequence[str]) -> None:
    criterion = rubric.criteria.get()
    chat_set = ChatSet.objects.create(name="week", kind=ChatSet.Kind.SAMPLE, rubric=rubric)
    run = Run.objects.create(judge=judge, chat_set=chat_set, state="done", finished_at=timezone.now())
    RunChat.objects.bulk_create((RunChat(run=run, chat=chat) for chat in chats), batch_size=1_000)
    Verdict.objects.bulk_create(
        (
            Verdict(
                run=run,
                chat=chat,
                criterion=criterion,
                state="read",
                value=False,
                rationale=text,
                stored_at=timezone.now(),
            )
            for chat, text in zip(chats, texts, strict=True)
        ),
        batch_size=1_000,
    )
    days_recount(run.pk)
