"""A rater's desk for tests: a rubric, chats, raters and an open job."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split
from labeling.models.labels import Adjudication, Assignment, Consensus, LabelingJob
from labeling.models.people import Rater, Role, User
from labeling.models.rubric import Criterion, Rubric
from labeling.rating.services.answers import label_save
from labeling.rating.services.leases import assignment_next
from tests.factories.rows import make_chat, make_criterion, make_rater, make_rubric, make_set, make_user


@dataclass(frozen=True)
class Desk:
    """An open job with everything around it."""

    rubric: Rubric
    criteria: list[Criterion]
    chats: list[Chat]
    chat_set: ChatSet
    raters: list[Rater]
    job: LabelingJob

    @property
    def rater(self) -> Rater:
        return self.raters[0]

    def taken(self, rater: Rater | None = None, *, job: LabelingJob | None = None) -> Assignment:
        """The rater's next chat, which there must be."""
        assignment = assignment_next(rater=rater or self.rater, job=job or self.job)
        assert assignment is not None
        return assignment

    def opened(self, **given: Any) -> LabelingJob:
        """Another job at the desk, one label a chat unless said otherwise."""
        plain: dict[str, Any] = {
            "chat_set": self.chat_set,
            "name": "November",
            "criteria": self.criteria,
            "raters": self.raters,
            "overlap": 1,
            "by": None,
        }
        return job_open(**plain | given)


def make_desk(
    *, chats: int = 3, raters: int = 2, overlap: int = 1, keys: Sequence[str] = ("polite", "correct")
) -> Desk:
    """Raters mara, rater-2, …, each with an account; the last criterion may be answered "not applicable"."""
    rubric = make_rubric(*keys[:-1])
    make_criterion(keys[-1], rubric=rubric, allow_na=True, dimension="answer_correctness")
    rows = [make_chat(f"chat-{n}") for n in range(1, chats + 1)]
    chat_set = make_set(rubric, *rows)
    people = [
        make_rater(name, user=make_user(name, Role.RATER))
        for name in ("mara", *(f"rater-{n}" for n in range(2, raters + 1)))
    ]
    criteria = list(rubric.criteria.all())
    job = job_open(
        chat_set=chat_set, name="October", criteria=criteria, raters=people, overlap=overlap, by=None
    )
    return Desk(rubric, criteria, rows, chat_set, people, job)


def answer_all(assignment: Assignment, *, value: bool = True) -> None:
    """Draft the same answer on every criterion of the assignment's job."""
    assert assignment.rater is not None
    for criterion in assignment.job.criteria.all():
        label_save(
            assignment=assignment,
            rater=assignment.rater,
            criterion=criterion,
            value=value,
            client_id=uuid.uuid4(),
        )


def user_of(rater: Rater) -> User:
    """The rater's account, which there must be."""
    assert rater.user is not None
    return rater.user


def grow(desk: Desk, *, to: int) -> None:
    """More chats for the set and the job, in bulk; every second one is holdout and has a consensus."""
    start = desk.chat_set.members.count()
    template = desk.chats[0]
    names = [f"more-{n}" for n in range(start + 1, to + 1)]
    chats = Chat.objects.bulk_create(
        Chat(
            external_id=name,
            topic_id=template.topic_id,
            messages=template.messages,
            content_hash=name,
            message_count=2,
            char_count=40,
        )
        for name in names
    )
    numbered = list(enumerate(chats, start + 1))
    ChatSetMember.objects.bulk_create(
        ChatSetMember(
            chat_set=desk.chat_set, chat=chat, position=n, split=Split.DEV if n % 2 else Split.HOLDOUT
        )
        for n, chat in numbered
    )
    Assignment.objects.bulk_create(
        Assignment(job=desk.job, chat=chat, slot=1, position=n) for n, chat in numbered
    )
    Consensus.objects.bulk_create(
        Consensus(chat=chat, criterion=desk.criteria[0], state="true", n_true=1) for _, chat in numbered[::2]
    )


def expire(assignment: Assignment) -> None:
    """Let the lease run out a minute ago."""
    Assignment.objects.filter(pk=assignment.pk).update(lease_expires_at=timezone.now() - timedelta(minutes=1))


def work_through(job: LabelingJob, rater: Rater) -> Iterator[Assignment]:
    """Every chat the rater gets until nothing is left; submitted, without a label."""
    while assignment := assignment_next(rater=rater, job=job):
        rows = Assignment.objects.filter(pk=assignment.pk)
        rows.update(state="submitted", lease_token=None, lease_expires_at=None)
        yield assignment


def gold_set_of(desk: Desk, *, chats: int, name: str = "known") -> ChatSet:
    """A gold set whose chats have one known answer each."""
    rows = [make_chat(f"{name}-{n}") for n in range(chats)]
    for chat in rows:
        Adjudication.objects.create(
            chat=chat,
            criterion=desk.criteria[0],
            value=True,
            reason="Plain to see.",
            by_name="Ines",
            created_at=timezone.now(),
        )
    gold = make_set(desk.rubric, *rows, name=name)
    ChatSet.objects.filter(pk=gold.pk).update(kind="gold")
    return gold
