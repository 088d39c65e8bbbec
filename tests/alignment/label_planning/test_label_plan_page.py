"""The label plan, page and API: needs, samples, and what stays hidden from raters."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.people import Role, User
from tests.factories.compared_runs import JUDGE, SPLITS, Compared, add_chats, text_of, urls
from tests.factories.label_samples import BARE, DRAW, estimate_url, strip
from tests.factories.rows import make_rater, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def bare(compared: Compared) -> Compared:
    """Chats 9 to 40 have no label on `polite`."""
    strip(compared, BARE)
    return compared


def plan_url(compared: Compared, query: str = "") -> str:
    return reverse("alignment:label_plan", args=[compared.run.pk]) + query


def api_url(compared: Compared, name: str) -> str:
    return reverse(f"api_{name}", args=[compared.run.pk])


API_DRAW: dict[str, Any] = {"criteria": ["polite"], "chats": 12, "judge_false": 8, "name": "November"}


# ---------- rights ----------


def test_raters_and_authors_get_404(bare: Compared, author: Client, client: Client, rater_user: User) -> None:
    client.force_login(rater_user)
    for someone in (client, author):
        for url in (plan_url(bare), estimate_url(bare), api_url(bare, "label_plan")):
            assert someone.get(url).status_code == 404
        for url, body in ((plan_url(bare), DRAW), (api_url(bare, "label_draws"), API_DRAW)):
            assert someone.post(url, body, content_type="application/json").status_code == 404
    assert not ChatSet.objects.filter(kind="sample").exists()


def test_only_leads_see_the_link(bare: Compared, lead: Client, author: Client) -> None:
    assert plan_url(bare) in text_of(lead.get(urls(bare)["report"]))
    assert plan_url(bare) not in text_of(author.get(urls(bare)["report"]))


# ---------- what it says ----------


def test_the_report_shows_the_next_labels_to_add(compared: Compared, lead: Client, author: Client) -> None:
    for someone, start in ((lead, "Label"), (author, "Ask a lead to label")):
        page = text_of(someone.get(urls(compared)["report"]))
        assert f"{start} 20 more chats: 10 True and 10 False" in page
        assert f"{start} 30 more chats with answer False" in page  # welcome: never False


def test_the_page_shows_the_missing_labels_of_each_decision(bare: Compared, lead: Client) -> None:
    response = lead.get(plan_url(bare, "?criterion=polite"))
    page = text_of(response)
    assert "</span> on 8 chats: 4 True, 4 False" in page
    assert "Label 92 more chats, at least 26 True" in page
    assert "chats judged False: about" in page
    assert response.context["focus"].counts.three == 8
    assert lead.get(plan_url(bare, "?criterion=nothing")).status_code == 404
    assert lead.get(plan_url(bare, "?split=nothing")).status_code == 404


def test_topics_with_few_labels_for_their_size_come_first(bare: Compared, lead: Client) -> None:
    chat = bare.chat(40)
    chat.topic = type(chat.topic).objects.create(key="refund", name="Refund")
    chat.save()
    context = lead.get(plan_url(bare, "?criterion=polite")).context
    rows = [*context["small_topics"], *context["topics"]]
    assert [(row.name, row.chats, row.answers, row.thin) for row in rows] == [
        ("Refund", 1, 0, True),
        ("Delivery", 39, 8, False),
    ]


@pytest.mark.heavy
def test_the_page_asks_no_more_queries_of_more_chats(bare: Compared, lead: Client) -> None:
    def queries(url: str) -> int:
        lead.get(url)  # the report is stored now
        with CaptureQueriesContext(connection) as caught:
            assert lead.get(url).status_code == 200
        return len(caught)

    estimate = estimate_url(bare) + "?criteria=polite&criteria=welcome&name=n&seed=1&chats=5"
    before = queries(plan_url(bare)), queries(estimate)
    add_chats(bare, to=300)
    strip(bare, range(9, 301))
    assert (queries(plan_url(bare)), queries(estimate)) == before


# ---------- samples ----------


def test_the_preview_writes_nothing_and_estimates_the_labels(bare: Compared, lead: Client) -> None:
    page = text_of(lead.get(estimate_url(bare), DRAW))
    assert "<dt>Chats to label</dt><dd>12</dd>" in page
    assert not ChatSet.objects.filter(kind="sample").exists()
    assert "99 chats requested, 32 are eligible" in text_of(
        lead.get(estimate_url(bare), DRAW | {"chats": 99})
    )


def test_a_new_sample_links_to_a_labelling_job(bare: Compared, lead: Client) -> None:
    response = lead.post(plan_url(bare), DRAW, follow=True)
    chat_set = ChatSet.objects.get(name="November")
    assert chat_set.members.count() == 12
    job = f"{reverse('labeling:job_new')}?set={chat_set.pk}"
    assert job in text_of(response)
    assert lead.get(job).status_code == 200


def test_a_repeated_submission_creates_no_second_set(bare: Compared, lead: Client) -> None:
    for _ in range(2):
        assert lead.post(plan_url(bare), DRAW).status_code == 302
    assert ChatSet.objects.filter(kind="sample").count() == 1


def test_a_refused_request_stays_in_the_form(bare: Compared, lead: Client) -> None:
    response = lead.post(plan_url(bare), DRAW | {"name": "calibration", "into": "nowhere"})
    assert response.status_code == 200
    assert "is not one of train, dev, holdout" in text_of(response)
    response = lead.post(plan_url(bare), DRAW | {"name": "calibration"})
    assert "A chat set &#x27;calibration&#x27; exists: choose another name" in text_of(response)


# ---------- a part of the run ----------


def test_the_preview_is_of_the_split_that_is_planned_whatever_split_the_set_gets(
    bare: Compared, lead: Client
) -> None:
    dev = DRAW | {"chats": 6, "judge_false": 2, "split": "dev"}
    for into in ("", "holdout", "train=20,dev=80"):
        response = lead.get(estimate_url(bare), dev | {"into": into})
        there = {chat for share in response.context["preview"].shares for chat in share.stratum.chats}
        assert there == {bare.chat(n).pk for n in BARE if SPLITS[n % 4] == "dev"}


def test_a_topic_is_planned_and_sampled_alone_and_stays_in_the_address(bare: Compared, lead: Client) -> None:
    refund = Topic.objects.create(key="refund", name="Refund")
    Chat.objects.filter(external_id__in=[f"chat-{n}" for n in (1, 2, *range(20, 30))]).update(topic=refund)
    response = lead.get(plan_url(bare, "?criterion=polite&topic=refund"))
    assert response.context["focus"].counts.n == 2
    assert '?criterion=welcome&amp;topic=refund"' in text_of(response)
    assert lead.get(api_url(bare, "label_plan") + "?topic=refund").json()["topic"] == "refund"
    created = lead.post(
        plan_url(bare, "?criterion=polite&topic=refund"), DRAW | {"chats": 4, "judge_false": 1}
    )
    assert "topic=refund" in created["Location"]
    chat_set = ChatSet.objects.get(name="November")
    assert {row.chat.topic for row in chat_set.members.select_related("chat__topic")} == {refund}
    assert (chat_set.sampling or {})["run_topic"] == "refund"


# ---------- API ----------


def test_the_api_returns_the_same_needs_and_creates_one_sample(bare: Compared, lead: Client) -> None:
    plan = lead.get(api_url(bare, "label_plan")).json()
    (polite,) = [row for row in plan["criteria"] if row["key"] == "polite"]
    decisions = {one["decision"]: one for one in polite["decisions"]}
    assert (decisions["badge"]["missing_false"], decisions["badge"]["met"]) == (26, False)
    assert (decisions["status"]["missing_chats"], decisions["status"]["missing_false"]) == (52, 26)

    def post(**more: Any) -> Any:
        return lead.post(api_url(bare, "label_draws"), API_DRAW | more, content_type="application/json")

    dry = post(dry_run=True)
    assert (dry.status_code, dry.json()["chats"], dry.json()["judge_false"]) == (200, 12, 8)
    assert not ChatSet.objects.filter(kind="sample").exists()
    first, again = post(client_id="a"), post(client_id="a")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["set"] == again.json()["set"]
    assert post(name="November").status_code == 400
    assert post(criteria=["nothing"]).status_code == 400


# ---------- what raters must not learn ----------


def test_a_rater_of_a_sample_cannot_see_how_it_was_sampled(
    bare: Compared, lead: Client, client: Client
) -> None:
    lead.post(plan_url(bare), DRAW)
    chat_set = ChatSet.objects.get(name="November")
    chat_set.members.update(stratum="CANARY")
    chat_set.sampling = {"strata": "CANARY"}
    chat_set.save()
    user = make_user("mara", Role.RATER)
    polite = bare.rubric.criteria.filter(key="polite")
    job = job_open(
        chat_set=chat_set,
        name="Job",
        criteria=list(polite),
        overlap=1,
        by=None,
        raters=[make_rater("mara", user=user)],
    )
    client.force_login(user)
    pages = [client.get(reverse("labeling:queue")), client.get(reverse("api_queue"))]
    taken = client.post(reverse("labeling:next", args=[job.pk]), follow=True)
    assignment = job.assignments.get(state="leased").pk
    pages += [taken, client.get(reverse("api_assignment", args=[assignment]))]
    for page in pages:
        assert page.status_code == 200
        assert "CANARY" not in page.content.decode()


def test_the_order_of_the_job_does_not_put_chats_judged_false_first(bare: Compared, lead: Client) -> None:
    lead.post(plan_url(bare), DRAW | {"chats": 24, "judge_false": 12, "seed": 4})
    chat_set = ChatSet.objects.get(name="November")
    polite = bare.rubric.criteria.filter(key="polite")
    job = job_open(
        chat_set=chat_set, name="Job", criteria=list(polite), overlap=1, by=None, raters=[make_rater()]
    )
    names = job.assignments.order_by("position").values_list("chat__external_id", flat=True)
    verdicts = [JUDGE["polite"](int(name.removeprefix("chat-"))) for name in names]
    assert 2 <= sum(verdicts[:12]) <= 10


def test_a_lead_who_labels_too_sees_no_strata_by_topic(bare: Compared, client: Client) -> None:
    client.force_login(make_user("both", Role.RATER, Role.LEAD))
    assert "By topic" not in text_of(client.get(estimate_url(bare), DRAW))
    answer = client.post(
        api_url(bare, "label_draws"), API_DRAW | {"dry_run": True}, content_type="application/json"
    )
    assert answer.json()["strata"] is None


# ---------- pending labels, and samples that cannot be created ----------


def new_sample(bare: Compared, lead: Client, **more: Any) -> ChatSet:
    lead.post(plan_url(bare), DRAW | more)
    return ChatSet.objects.get(name="November")


def test_a_sample_without_a_job_is_named_and_its_job_has_its_criteria(bare: Compared, lead: Client) -> None:
    chat_set = new_sample(bare, lead)
    page = text_of(lead.get(plan_url(bare, "?criterion=polite")))
    assert "Sample November has no labelling job yet" in page and "Open a job for it" in page
    assert "no labelling job yet" not in text_of(lead.get(plan_url(bare, "?criterion=welcome")))
    form = lead.get(f"{reverse('labeling:job_new')}?set={chat_set.pk}").context["form"]
    assert [row.key for row in form["criteria"].initial] == ["polite"]


def test_the_plan_names_open_jobs_and_their_chats(bare: Compared, lead: Client) -> None:
    chat_set = new_sample(bare, lead, chats=6, judge_false=3)
    polite = list(bare.rubric.criteria.filter(key="polite"))
    job = job_open(
        chat_set=chat_set, name="Drawn six", criteria=polite, overlap=1, by=None, raters=[make_rater()]
    )
    response = lead.get(plan_url(bare, "?criterion=polite"))
    assert [(one.job, one.chats, one.done) for one in response.context["jobs"]] == [(job.pk, 6, 0)]
    assert response.context["samples_without_job"] == []
    job.assignments.filter(position=1).update(state="skipped")
    (one,) = lead.get(plan_url(bare, "?criterion=polite")).context["jobs"]
    assert (one.chats, one.done) == (6, 1)


def test_without_eligible_chats_the_page_advises_no_sample_but_the_next_step(
    bare: Compared, lead: Client
) -> None:
    preview = lead.get(estimate_url(bare), DRAW | {"chats": 4, "judge_false": 2}).context["preview"]
    there = preview.available
    new_sample(bare, lead, chats=there.suspect + there.other, judge_false=there.suspect)
    page = lead.get(plan_url(bare, "?criterion=polite"))
    estimate = lead.get(estimate_url(bare), DRAW | {"chats": ""})
    assert page.context["advice"] == ""
    for text in (text_of(page), text_of(estimate)):
        assert "No chat is eligible" in text
        assert reverse("labeling:set_detail", args=[bare.chat_set.pk]) in text
        assert f"{reverse('evaluation:run_new')}?set={bare.chat_set.pk}" in text
    assert 'type="submit" disabled' in page.content.decode()


def test_the_preview_warns_if_one_verdict_is_not_sampled(bare: Compared, lead: Client) -> None:
    page = text_of(lead.get(estimate_url(bare), DRAW | {"chats": 8, "judge_false": 8}))
    assert "chats not judged False. Overall rates will use earlier labels" in page
    assert "in topics without a sampled chat" not in page


def test_small_topics_are_folded_and_named_as_they_are(bare: Compared, lead: Client) -> None:
    chat = bare.chat(40)
    chat.topic = type(chat.topic).objects.create(key="adf_rename", name="adf_rename file")
    chat.save()
    response = lead.get(plan_url(bare, "?criterion=polite"))
    assert [row.name for row in response.context["small_topics"]] == ["adf_rename file"]
    assert "1 small topic," in text_of(response) and "adf_rename file" in text_of(response)


@pytest.mark.parametrize("page", ["label_plan", "league"])
def test_its_pages_are_under_reports_in_the_navigation(bare: Compared, lead: Client, page: str) -> None:
    about = bare.run.pk if page == "label_plan" else bare.chat_set.pk
    nav = lead.get(reverse(f"alignment:{page}", args=[about])).context["nav"]
    assert [item.label for item in nav if item.current] == ["Reports"]
