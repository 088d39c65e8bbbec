"""A rater sees nothing of the judge or of other raters, before submitting or after."""

import json
import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.models.judges import Judge
from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Adjudication, Label
from labeling.services.consensus import consensus_refresh
from labeling.services.labelling import assignment_submit
from tests.factories import make_rater
from tests.labeling.desk import Desk, answer_all, make_desk, user_of

pytestmark = pytest.mark.django_db

CANARY = "CANARY"


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=3, raters=2, overlap=2)


@pytest.fixture
def rater(desk: Desk) -> Client:
    client = Client()
    client.force_login(user_of(desk.rater))
    return client


def judged(desk: Desk) -> Run:
    """A finished run with verdicts on every chat, its texts full of canaries."""
    judge = Judge.objects.create(
        fingerprint="f" * 64, kind="imported", name=f"{CANARY}-judge", config={"model": f"{CANARY}-model"}
    )
    run = Run.objects.create(judge=judge, chat_set=desk.chat_set, state="done", error=f"{CANARY}-error")
    for chat in desk.chats:
        for criterion in desk.criteria:
            Verdict.objects.create(
                run=run,
                chat=chat,
                criterion=criterion,
                state="read",
                value=False,
                rationale=f"{CANARY}-rationale",
                explanation=f"{CANARY}-explanation",
                stored_at=timezone.now(),
            )
    return run


def labelled_by_another(desk: Desk) -> None:
    """Submitted labels of another rater, and an adjudication, on every chat."""
    other = make_rater(f"{CANARY}-rater")
    for chat in desk.chats:
        for criterion in desk.criteria:
            Label.objects.create(
                chat=chat,
                criterion=criterion,
                rater=other,
                version=criterion.versions.get(),
                value=False,
                rationale=f"{CANARY}-label",
                evidence=[{"n": 2, "start": 0, "end": 5, "quote": f"{CANARY}-quote"}],
                state="submitted",
                given_at=timezone.now(),
            )
        Adjudication.objects.create(
            chat=chat,
            criterion=desk.criteria[0],
            value=False,
            reason=f"{CANARY}-reason",
            by_name=f"{CANARY}-lead",
            created_at=timezone.now(),
        )
        chat.metadata = {"score": f"{CANARY}-metadata", "title": f"{CANARY}-title"}
        chat.experiment, chat.variant = f"{CANARY}-experiment", f"{CANARY}-variant"
        chat.save()
    consensus_refresh(
        criterion_ids=[row.pk for row in desk.criteria], chat_ids=[row.pk for row in desk.chats]
    )


def everything_said(desk: Desk, rater: Client, assignment_id: int, run: Run | None) -> list[Any]:
    """Every response a rater can get: pages, API, saves, refusals, and pages that are not theirs."""
    label = reverse("api_label", args=[assignment_id, "polite"])
    answer = {"client_id": str(uuid.UUID(int=assignment_id)), "value": True}
    said = [
        rater.get("/", follow=True),
        rater.get(reverse("labeling:queue")),
        rater.post(reverse("labeling:next", args=[desk.job.pk]), follow=True),
        rater.get(reverse("labeling:rate", args=[assignment_id])),
        rater.get(reverse("api_queue")),
        rater.put(label, json.dumps(answer), content_type="application/json"),
        rater.put(label, json.dumps(answer | {"value": "no"}), content_type="application/json"),
        rater.get(reverse("api_assignment", args=[assignment_id])),
        rater.get(reverse("api_assignment", args=[assignment_id + 1])),
        rater.post(reverse("api_submit", args=[assignment_id])),
        rater.post(reverse("api_skip", args=[assignment_id]), "{}", content_type="application/json"),
        rater.get(reverse("labeling:set_list")),
        rater.get(reverse("labeling:set_detail", args=[desk.chat_set.pk])),
    ]
    if run is not None:
        cell = [run.pk, desk.criteria[0].key, "fn"]
        said += [
            rater.get(reverse("evaluation:run_detail", args=[run.pk])),
            rater.get(reverse("evaluation:criterion_detail", args=[desk.criteria[0].key])),
            rater.get(reverse("alignment:report_run", args=[run.pk])),
            rater.get(reverse("alignment:cell", args=cell)),
            rater.get(reverse("alignment:chat", args=[run.pk, desk.chats[0].pk])),
        ]
    return said


def as_text(response: Any) -> str:
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"{response.status_code}\n{headers}\n{response.content.decode()}"


def without_tokens(text: str) -> str:
    """CSRF tokens are salted anew in each page, and Expires tells the second."""
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]+"|^Expires: .*$', "", text, flags=re.MULTILINE)


def test_no_word_of_the_judge_or_of_another_rater_reaches_a_rater_before_submitting(
    desk: Desk, rater: Client
) -> None:
    assignment = desk.taken()
    run = judged(desk)
    labelled_by_another(desk)
    for response in everything_said(desk, rater, assignment.pk, run):
        assert CANARY not in as_text(response)


def test_nor_after_submitting(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    run = judged(desk)
    labelled_by_another(desk)
    answer_all(assignment)
    assignment_submit(assignment=assignment, rater=desk.rater)
    for response in everything_said(desk, rater, assignment.pk, run):
        assert CANARY not in as_text(response)


def test_verdicts_and_labels_of_others_change_no_byte_of_what_a_rater_gets(desk: Desk, rater: Client) -> None:
    """Neither text nor count, order, length or header gives anything away."""
    assignment = desk.taken()
    urls = [
        reverse("labeling:queue"),
        reverse("labeling:rate", args=[assignment.pk]),
        reverse("api_queue"),
        reverse("api_assignment", args=[assignment.pk]),
    ]
    before = [without_tokens(as_text(rater.get(url))) for url in urls]
    judged(desk)
    labelled_by_another(desk)
    assert [without_tokens(as_text(rater.get(url))) for url in urls] == before


def test_the_rating_page_holds_no_word_of_judging(desk: Desk, rater: Client) -> None:
    judged(desk)
    page = rater.get(reverse("labeling:rate", args=[desk.taken().pk])).content.decode().lower()
    for word in ("verdict", "judge", "model", "consensus", "prompt version"):
        assert word not in page
