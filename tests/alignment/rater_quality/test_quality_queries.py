"""The quality pages ask the database as often at 10,000 chats as at 100."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from labeling.models.chats import Chat, ChatSetMember
from labeling.models.labels import Adjudication, Assignment, Label, LabelingJob
from labeling.models.people import Rater
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.rater_quality import job_of, pages, polite
from tests.factories.rows import analyze

pytestmark = pytest.mark.django_db
ACTIVE_MS = (1, 60_000)  # every second one is rushed


def grow(compared: Compared, job: LabelingJob, *, to: int) -> None:
    """More chats, each labelled by two raters in the job, who disagree on every fifth."""
    start = compared.chat_set.members.count()
    template, criterion, now = compared.chat(1), polite(), timezone.now()
    version, raters = criterion.versions.get(), list(Rater.objects.order_by("name")[:2])
    chats = Chat.objects.bulk_create(
        Chat(
            external_id=f"more-{n}", topic_id=template.topic_id, messages=template.messages,
            content_hash=f"more-{n}", message_count=2, char_count=40,
        )
        for n in range(start + 1, to + 1)
    )  # fmt: skip
    ChatSetMember.objects.bulk_create(
        ChatSetMember(chat_set=compared.chat_set, chat=chat, position=start + n, split="dev")
        for n, chat in enumerate(chats, 1)
    )
    assignments = Assignment.objects.bulk_create(
        Assignment(
            job=job, chat=chat, slot=slot, position=start + n, rater=rater, state="submitted",
            submitted_at=now, active_ms=ACTIVE_MS[n % 2], kind="gold" if n % 10 == 0 else "normal",
        )
        for n, chat in enumerate(chats, 1)
        for slot, rater in enumerate(raters, 1)
    )  # fmt: skip
    Label.objects.bulk_create(
        Label(
            chat_id=row.chat_id, criterion=criterion, rater_id=row.rater_id, version=version, assignment=row,
            value=row.slot == 1 or row.position % 5 != 0, state="submitted", given_at=now,
        )
        for row in assignments
        if row.rater_id
    )  # fmt: skip
    Adjudication.objects.bulk_create(
        Adjudication(chat=chat, criterion=criterion, value=True, reason="r", by_name="Ines", created_at=now)
        for chat in chats[::10]
    )


@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_the_number_of_queries_does_not_depend_on_the_number_of_chats(lead: Client) -> None:
    compared = make_compared()
    job = job_of(compared)
    asked: list[dict[str, int]] = []
    lead.get(pages(compared)["list"])  # what the site keeps in mind is asked for once
    for size in (100, 10_000):
        grow(compared, job, to=size)
        analyze()
        counts = {}
        for name, url in pages(compared, job).items():
            with CaptureQueriesContext(connection) as queries:
                assert lead.get(url).status_code == 200
            counts[name] = len(queries)
        asked.append(counts)
    assert asked[0] == asked[1]
    assert max(asked[0].values()) <= 30
