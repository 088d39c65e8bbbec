"""A rater sees nothing of the judge or of other raters before submitting; after it, at most the judge's view.

Time is not measured here. Instead: the same queries, in number and order, and the same bytes,
whatever others have answered.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from common.memory import memory as cache
from evaluation.models.runs import ModelCall, Verdict
from labeling.models.labels import Adjudication, Assignment, Consensus, Label, LabelRevision, RaterNote
from labeling.models.people import Role, Workspace
from labeling.rating.services.leases import assignment_next
from labeling.rating.services.submission import assignment_submit
from tests.cases import ANSWER
from tests.factories.api_calls import label_url, signed_in
from tests.factories.labelling_job import Desk, answer_all, make_desk, user_of
from tests.factories.route_calls import REVEAL, as_text, ask, by_reading_then_writing, calls, without_tokens
from tests.factories.rows import make_user
from tests.routes import url_of
from tests.world import CANARY, World, give_away_judge, give_away_people, rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.sweep]


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=3, raters=2, overlap=2)


def leaks(world: World, *methods: str) -> list[str]:
    """The calls whose answer to the rater holds a canary: of every route, by these methods."""
    found, rater = [], world.client("rater")
    for name, method, url, body in calls(world, *methods):
        with rolled_back():
            client = world.client("rater") if name == "account_logout" else rater
            said = as_text(ask(client, method, url, body))
        if CANARY in said:
            found.append(f"{method} {url} ({name}): …{said[said.index(CANARY) - 80 :][:200]}…")
    return found


# ---------- before submitting ----------


@by_reading_then_writing
def test_no_route_says_a_word_of_the_judge_or_of_others_before_submitting(
    world: World, by: Sequence[str]
) -> None:
    assert leaks(world, *by) == []


def test_nor_does_a_refusal(world: World) -> None:
    rater = world.client("rater")
    assignment = Assignment.objects.get(pk=world.args["assignment_id"])
    bodies: list[Any] = [{"value": "no"}, {"revision": 99}, {"version": 7}, {"evidence": [{"message": 9}]}]
    answers = [
        rater.put(label_url(assignment), json.dumps(ANSWER | body), content_type="application/json")
        for body in bodies
    ]
    answers += [rater.put(label_url(assignment), "[", content_type="application/json")]
    answers += [rater.post(reverse("api_submit", args=[assignment.pk]), content_type="application/json")]
    assert {answer.status_code for answer in answers} == {400, 409}
    assert not [answer for answer in answers if CANARY in as_text(answer)]


def test_the_canaries_are_where_they_should_be(world: World) -> None:
    """The lead reads them: the test above would else prove nothing."""
    pages = ("alignment:chat", "evaluation:run_detail", "evaluation:profile_list")
    lead = world.client("lead")
    for name in pages:
        assert CANARY in as_text(ask(lead, "GET", url_of(name, world.args))), name


@pytest.mark.heavy
def test_what_others_answer_changes_no_byte_and_no_query(world: World) -> None:
    """Neither text nor count, order, length, header or number of queries gives anything away."""
    before = heard(world)
    others = Label.objects.exclude(rater=world.desk.rater)
    others.filter(rationale__contains=CANARY).update(value=True, rationale="Short.", evidence=[])
    LabelRevision.objects.filter(label__in=others).delete()
    others.filter(criterion=world.desk.criteria[1]).delete()
    Verdict.objects.filter(criterion=world.desk.criteria[0]).update(value=True, rationale="Long. " * 900)
    Verdict.objects.filter(criterion=world.desk.criteria[1]).delete()
    ModelCall.objects.update(reply="Short.")
    Consensus.objects.update(state="true", n_true=7)
    Adjudication.objects.all().delete()
    RaterNote.objects.exclude(rater=world.desk.rater).delete()
    Assignment.objects.update(kind="normal")
    assert heard(world) == before


def heard(world: World) -> dict[str, tuple[str, list[str]]]:
    """What each address shows the rater, and the kinds of its queries."""
    found = {}
    for name, method, url, _ in calls(world, "GET"):
        with rolled_back():
            client = world.client("rater")
            # Kept by a process for seconds: the second walk would find it or not, by the time of the first.
            cache.clear()
            with CaptureQueriesContext(connection) as queries:
                said = without_tokens(as_text(ask(client, method, url)))
        statements = [re.sub(r"'[^']*'|\d+", "?", query["sql"]) for query in queries.captured_queries]
        found[f"{name} {url}"] = said, statements
    return found


def test_that_others_answered_at_all_changes_nothing_either(desk: Desk) -> None:
    assignment, rater = desk.taken(), signed_in(user_of(desk.rater))
    urls = [
        reverse("labeling:queue"),
        reverse("labeling:rate", args=[assignment.pk]),
        reverse("api_queue"),
        reverse("api_assignment", args=[assignment.pk]),
    ]
    before = [without_tokens(as_text(rater.get(url))) for url in urls]
    give_away(desk)
    assert [without_tokens(as_text(rater.get(url))) for url in urls] == before


def test_the_order_of_the_chats_does_not_depend_on_what_others_answered(desk: Desk) -> None:
    with rolled_back():
        before = chats_in_order(desk)
    give_away(desk)
    assert chats_in_order(desk) == before == [chat.pk for chat in desk.chats]


def give_away(desk: Desk) -> None:
    """Verdicts, and labels, notes and decisions of others, on every chat."""
    give_away_judge(desk)
    give_away_people(desk, other=desk.raters[1], lead=make_user("ines", Role.LEAD))


def chats_in_order(desk: Desk) -> list[int]:
    """The chats as the rater gets them."""
    taken = []
    while assignment := assignment_next(rater=desk.rater, job=desk.job):
        taken.append(assignment.chat_id)
        answer_all(assignment)
        assignment_submit(assignment=assignment, rater=desk.rater)
    return taken


def test_the_rating_page_holds_no_word_of_judging(desk: Desk) -> None:
    give_away_judge(desk)
    rater = signed_in(user_of(desk.rater))
    page = without_tokens(as_text(rater.get(reverse("labeling:rate", args=[desk.taken().pk])))).lower()
    for word in ("verdict", "judge", "model", "consensus", "prompt version", "gold"):
        assert word not in page


# ---------- after submitting ----------


def finish(world: World) -> None:
    """The rater submits the chat in work."""
    assignment = Assignment.objects.get(pk=world.args["assignment_id"])
    answer_all(assignment)
    assignment_submit(assignment=assignment, rater=world.desk.rater)


@pytest.mark.heavy
def test_no_route_says_more_after_submitting_where_the_workspace_reveals_nothing(world: World) -> None:
    Workspace.objects.update(reveal_after_submit=False)
    finish(world)
    assert leaks(world, "GET", "POST") == []
    url = url_of(REVEAL[0], world.args, {"assignment_id": REVEAL[1]})
    assert ask(world.client("rater"), "POST", url).status_code == 404


def test_the_reveal_shows_the_judges_view_and_nothing_of_other_raters(world: World) -> None:
    finish(world)
    url = url_of(REVEAL[0], world.args, {"assignment_id": "assignment_id"})
    said = as_text(ask(world.client("rater"), "POST", url))
    shown = set(re.findall(rf"{CANARY}-\w+", said))
    assert shown == {f"{CANARY}-judge", f"{CANARY}-rationale"}


@pytest.mark.heavy
def test_another_raters_reveal_shows_nothing_to_those_who_still_label(world: World) -> None:
    other = world.client("other")
    shown = ask(other, "POST", url_of(REVEAL[0], world.args, {"assignment_id": "foreign_assignment"}))
    assert CANARY in as_text(shown)
    assert leaks(world, "GET") == []
