"""Labels that a new text dropped: job, set, quality and report say how many, and which text they answer."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.comparison.queries.scope import Scope
from alignment.reports.queries.reports import alignment_report
from labeling.consensus.services.consensus import consensus_follow
from labeling.models.chats import Split
from labeling.models.labels import Label
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rating.services.submission import assignment_submit
from labeling.rubric.core.rubric import version_hash
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.labelling_job import Desk, answer_all, grow, make_desk
from tests.factories.pages import page_text
from tests.files import label, run, write_jsonl

pytestmark = pytest.mark.django_db

WORDS = "11 labels on polite no longer count: they answer version 1 of its text, not version 2"


def reworded(key: str, *, number: int, question: str) -> CriterionVersion:
    asked: dict[str, Any] = {
        "question": question, "definition": "D.", "passes_when": True, "allow_na": False
    }  # fmt: skip
    version = CriterionVersion.objects.create(
        criterion=Criterion.objects.get(key=key), number=number, content_hash=version_hash(**asked), **asked
    )
    consensus_follow(version=version)
    return version


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


@pytest.fixture
def desk(tmp_path: Any) -> Desk:
    """Twelve chats labelled on version 1; one of them again on version 2."""
    desk = make_desk(chats=12, raters=1)
    for _ in desk.chats:
        answer_all(assignment := desk.taken())
        assignment_submit(assignment=assignment, rater=desk.rater)
    reworded("polite", number=2, question="Was it kind?")
    assert dropped(desk) is None
    path = write_jsonl(tmp_path / "labels.jsonl", label("chat-1", value=False))
    run("import_labels", path, "--replace-account-labels")
    return desk


def pages(desk: Desk) -> list[str]:
    """Job, set, and the quality of each."""
    job, chat_set = desk.job.pk, desk.chat_set.pk
    quality = reverse("quality:overview", args=[job]), reverse("quality:set_overview", args=[chat_set])
    return [f"/jobs/{job}/", f"/sets/{chat_set}/", *quality]


def dropped(desk: Desk) -> Any:
    (polite,) = [row for row in report(desk)["criteria"] if row["key"] == "polite"]
    return polite["dropped_labels"]


def report(desk: Desk) -> dict[str, Any]:
    body = alignment_report(Scope(desk.chat_set))
    json.dumps(body)
    return body


def test_every_page_says_how_many_labels_a_new_text_dropped(desk: Desk, lead: Client) -> None:
    for url in (*pages(desk), f"/reports/sets/{desk.chat_set.pk}/"):
        assert WORDS in page_text(lead.get(url)), url


def test_the_report_gives_the_number_and_the_older_version_per_criterion(desk: Desk) -> None:
    body = report(desk)
    polite, other = body["criteria"]
    assert polite["dropped_labels"] == {"labels": 11, "versions": [1], "counting": 2}
    assert WORDS in polite["cautions"]
    assert (polite["unlabelled"], other["dropped_labels"]) == (11, None)


def test_the_api_of_job_and_quality_gives_them_too(desk: Desk, lead: Client) -> None:
    numbers = {"criterion": "polite", "labels": 11, "versions": [1], "counting": 2}
    assert lead.get(f"/api/jobs/{desk.job.pk}/").json()["progress"]["dropped_labels"] == [numbers]
    assert lead.get(f"/api/sets/{desk.chat_set.pk}/quality/").json()["dropped_labels"] == [numbers]


def test_two_older_texts_are_both_named_and_a_restored_one_counts(desk: Desk) -> None:
    reworded("polite", number=3, question="Was it warm?")
    Label.objects.filter(chat__external_id="chat-2", criterion__key="polite").update(
        version=CriterionVersion.objects.get(criterion__key="polite", number=3)
    )
    Criterion.objects.filter(key="polite").update(labels_seq=99)
    assert dropped(desk) == {"labels": 11, "versions": [1, 2], "counting": 3}
    first = CriterionVersion.objects.get(criterion__key="polite", number=1)
    CriterionVersion.objects.create(
        criterion=first.criterion,
        number=4,
        question=first.question,
        definition=first.definition,
        content_hash=first.content_hash,
    )
    Criterion.objects.filter(key="polite").update(labels_seq=100)
    assert dropped(desk) == {"labels": 2, "versions": [2, 3], "counting": 4}


def test_labels_that_never_counted_are_not_dropped(desk: Desk) -> None:
    Label.objects.filter(chat__external_id="chat-3").update(post_reveal=True)
    Label.objects.filter(chat__external_id="chat-4").update(state=Label.State.DRAFT)
    Criterion.objects.update(labels_seq=99)
    assert dropped(desk)["labels"] == 9


def test_the_set_page_counts_no_holdout_labels_for_authors(desk: Desk, author_user: User) -> None:
    desk.chat_set.members.filter(position__gt=6).update(split=Split.HOLDOUT)
    author = Client()
    author.force_login(author_user)
    assert "5 labels on polite no longer count" in page_text(author.get(f"/sets/{desk.chat_set.pk}/"))


def test_the_command_prints_them(desk: Desk) -> None:
    answer = run("alignment_report", "--set", desk.chat_set.name)
    assert answer.document["criteria"][0]["dropped_labels"]["labels"] == 11


def test_the_pages_take_the_same_number_of_queries_with_many_labels(desk: Desk, lead: Client) -> None:
    for url in pages(desk):
        counts = []
        for size in (13, 40):
            grow(desk, to=size)
            lead.get(url)
            with CaptureQueriesContext(connection) as queries:
                assert lead.get(url).status_code == 200
            counts.append(len(queries))
        assert counts[0] == counts[1], url


def test_nothing_is_said_while_all_labels_count(lead: Client) -> None:
    compared: Compared = make_compared(chats=8)
    reworded("polite", number=2, question="Was it kind?")
    assert all(
        row["dropped_labels"] is None for row in alignment_report(Scope(compared.chat_set))["criteria"]
    )
    assert "no longer count" not in page_text(lead.get(f"/sets/{compared.chat_set.pk}/"))
