"""Chat sets: the list, and one set."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.labels import Label
from labeling.models.people import Rater, User
from labeling.rating.services.submission import assignment_submit
from labeling.sampling.queries import yesterday
from labeling.sampling.services import draw_night
from tests.factories.labelling_job import Desk, answer_all, grow, make_desk, user_of
from tests.factories.nights import arrived, make_plan
from tests.factories.pages import page_text
from tests.factories.rows import make_chat

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk()


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def set_url(desk: Desk) -> str:
    return reverse("labeling:set_detail", args=[desk.chat_set.pk])


def test_the_list_counts_splits_labelled_chats_and_open_jobs(desk: Desk, lead_user: User) -> None:
    desk.chat_set.members.filter(position=3).update(split="holdout")
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    response = signed_in(lead_user).get(reverse("labeling:set_list"))
    (row,) = response.context["sets"]
    assert (row.chats, row.train, row.dev, row.holdout) == (3, 0, 2, 1)
    assert (row.labelled, row.open_jobs) == (1, 1)
    assert f'href="{set_url(desk)}"' in page_text(response)


def test_the_list_counts_no_labelled_holdout_chat_for_an_author(desk: Desk, author_user: User) -> None:
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    author = signed_in(author_user)
    for split, labelled in (("dev", 1), ("holdout", 0)):
        desk.chat_set.members.filter(chat=assignment.chat).update(split=split)
        (row,) = author.get(reverse("labeling:set_list")).context["sets"]
        assert (row.chats, row.labelled) == (3, labelled)


def test_samples_of_plans_are_listed_by_plan_alone(desk: Desk, lead_user: User) -> None:
    arrived({"refund": 4})
    plan = make_plan(desk.chat_set.rubric, by=lead_user, name="Every night", chats=2)
    sample = draw_night(plan=plan, day=yesterday(), spreads={}).chat_set
    assert sample is not None
    client, url = signed_in(lead_user), reverse("labeling:set_list")
    page = client.get(url)
    assert [row.id for row in page.context["sets"]] == [desk.chat_set.pk]
    assert f'href="?plan={plan.pk}"' in page_text(page)
    (row,) = client.get(url, {"plan": plan.pk}).context["sets"]
    assert (row.id, row.chats) == (sample.pk, 2)
    assert client.get(url, {"plan": "0"}).status_code == 404
    # Pickers leave it out, unless it is chosen already.
    assert {sample, desk.chat_set} == {*ChatSet.objects.listed(also=str(sample.pk))}
    for picker in ("labeling:job_new", "evaluation:run_new"):
        assert sample.name not in page_text(client.get(reverse(picker)))
    assert sample.name in page_text(client.get(reverse("evaluation:run_new"), {"set": sample.pk}))
    assert [row["id"] for row in client.get("/api/sets/").json()["sets"]] == [desk.chat_set.pk]
    assert [row["id"] for row in client.get(f"/api/sets/?plan={plan.pk}").json()["sets"]] == [sample.pk]
    sample.kind = ChatSet.Kind.GOLD
    sample.save()
    assert sample in ChatSet.objects.listed()  # a lead has chosen it since


def test_a_set_shows_its_topics_its_jobs_and_how_far_the_labels_go(desk: Desk, lead_user: User) -> None:
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    response = signed_in(lead_user).get(set_url(desk))
    (topic,) = response.context["topics"]
    assert (topic.topic, topic.chats, topic.labelled, topic.answered, topic.unresolved) == (
        "unknown",
        3,
        1,
        2,
        0,
    )
    (job,) = response.context["jobs"]
    assert (job.name, job.submitted, job.wanted) == ("October", 1, 3)
    assert [(chat.external_id, chat.answered) for chat in response.context["chats"]] == [
        ("chat-1", 2),
        ("chat-2", 0),
        ("chat-3", 0),
    ]


def test_each_chat_leads_to_its_page_and_shows_labels_split_and_jobs(desk: Desk, lead_user: User) -> None:
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    desk.opened(name="Second look")
    client = signed_in(lead_user)
    listed = client.get(set_url(desk))
    first, second, _ = listed.context["chats"]
    assert (first.labels, first.raters, second.labels) == (2, 1, 0)
    assert [name for _, name in first.jobs] == ["Second look", "October"]
    url = reverse("labeling:set_chat", args=[desk.chat_set.pk, first.id])
    assert f'href="{url}"' in page_text(listed)
    page = page_text(client.get(url))
    for shown in (
        "mara: True",
        "Second look",
        "Is polite so?",
        reverse("alignment:chat_newest", args=[first.id]),
    ):
        assert shown in page
    assert reverse("labeling:set_chat", args=[desk.chat_set.pk, second.id]) in page


def test_a_holdout_chats_page_is_for_leads(desk: Desk, author_user: User, lead_user: User) -> None:
    desk.chat_set.members.filter(position=2).update(split="holdout")
    url = reverse("labeling:set_chat", args=[desk.chat_set.pk, desk.chats[1].pk])
    assert signed_in(author_user).get(url).status_code == 404
    assert signed_in(lead_user).get(url).status_code == 200
    other = reverse("labeling:set_chat", args=[desk.chat_set.pk, desk.chats[0].pk])
    assert "chat-2" not in page_text(signed_in(author_user).get(other))


def test_a_set_asks_as_many_queries_for_many_jobs_and_labels(desk: Desk, lead_user: User) -> None:
    client = signed_in(lead_user)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(set_url(desk))
        return len(captured)

    queries()
    before = queries()
    for n in range(3):
        desk.opened(name=f"Job {n}")
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    assert queries() == before


def test_the_chats_can_be_narrowed_by_topic_and_split(desk: Desk, lead_user: User) -> None:
    refund = make_chat("refund-1", topic="refund")
    desk.chat_set.members.create(chat=refund, position=9, split="train")
    client = signed_in(lead_user)
    for query in ("topic=refund", "split=train"):
        chats = client.get(f"{set_url(desk)}?{query}").context["chats"]
        assert [chat.external_id for chat in chats] == ["refund-1"]
    assert client.get(f"{set_url(desk)}?topic=nonsense&page=99").status_code == 200


def test_what_was_written_for_the_demo_is_said_on_the_page(desk: Desk, lead_user: User) -> None:
    page = page_text(signed_in(lead_user).get(set_url(desk)))
    assert "written for this demo" not in page
    Chat.objects.update(origin="demo")
    answer_all(desk.taken())
    Label.objects.update(source="demo")
    page = page_text(signed_in(lead_user).get(set_url(desk)))
    assert "Chats written for this demo" in page
    assert "Labels written for this demo" in page


def test_an_author_sees_numbers_of_the_holdout_but_none_of_its_chats(
    desk: Desk, author_user: User, lead_user: User
) -> None:
    desk.chat_set.members.filter(position=2).update(split="holdout")
    page = signed_in(author_user).get(set_url(desk))
    assert [chat.external_id for chat in page.context["chats"]] == ["chat-1", "chat-3"]
    assert "chat-2" not in page_text(page)
    assert page.context["totals"]["holdout"] == 1
    assert "Prompt authors cannot see holdout chats" in page_text(page)
    assert not signed_in(author_user).get(f"{set_url(desk)}?split=holdout").context["chats"]
    assert "chat-2" in page_text(signed_in(lead_user).get(set_url(desk)))


def test_authors_see_neither_topics_nor_labels_of_the_holdout_one_by_one(
    desk: Desk, author_user: User, lead_user: User
) -> None:
    chat = desk.chats[1]
    chat.topic = Topic.objects.create(key="odd", name="Odd one")
    chat.save()
    answer_all(desk.taken())
    desk.chat_set.members.filter(chat=chat).update(split="holdout")
    page = signed_in(author_user).get(set_url(desk))
    *named, held = page.context["topics"]
    assert (held.held, held.topic, held.chats, held.labelled) == (True, "", 1, 0)
    assert all(row.topic != "Odd one" for row in named)
    assert "Odd one" not in page_text(page)
    assert "of 2 train and dev chats have labels" in page_text(page)
    lead = signed_in(lead_user).get(set_url(desk))
    assert "Odd one" in page_text(lead)
    assert not any(row.held for row in lead.context["topics"])


def test_a_chat_that_is_holdout_in_another_set_is_hidden_from_authors_here_too(
    desk: Desk, author_user: User
) -> None:
    from tests.factories.rows import make_set

    make_set(desk.rubric, desk.chats[0], name="gate", split="holdout")
    page = signed_in(author_user).get(set_url(desk))
    assert "chat-1" not in page_text(page)


def test_only_a_lead_is_shown_the_way_to_open_a_job_and_a_rater_sees_no_sets(
    desk: Desk, author_user: User, lead_user: User
) -> None:
    way = f'href="{reverse("labeling:job_new")}?set={desk.chat_set.pk}"'
    assert way in page_text(signed_in(lead_user).get(set_url(desk)))
    author = signed_in(author_user)
    assert way not in page_text(author.get(set_url(desk)))
    assert author.post(set_url(desk), {"name": "Mine"}).status_code == 405
    for url in (reverse("labeling:set_list"), set_url(desk)):
        assert signed_in(user_of(desk.rater)).get(url).status_code == 404


@pytest.mark.heavy
@pytest.mark.parametrize("route", ["labeling:set_list", "labeling:set_detail"])
def test_the_pages_take_the_same_number_of_queries_at_40_and_4000_chats(
    desk: Desk, lead_user: User, route: str
) -> None:
    client, counts = signed_in(lead_user), []
    url = reverse(route, args=[desk.chat_set.pk] if route.endswith("detail") else [])
    for size in (40, 4000):
        grow(desk, to=size)
        client.get(url)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_an_empty_workspace_says_what_to_do_next(lead_user: User) -> None:
    assert Rater.objects.count() == 0
    page = page_text(signed_in(lead_user).get(reverse("labeling:set_list")))
    assert "No chat sets yet" in page and reverse("labeling:import_new") in page
