"""API of labels and chat sets, for leads."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from labeling.models.labels import Label
from labeling.models.people import Role, User
from labeling.people.services.tokens import token_create
from labeling.rating.services.submission import assignment_submit
from tests.factories.labelling_job import Desk, answer_all, make_desk
from tests.factories.rows import make_chat, make_rater, make_rubric, make_set, make_user

pytestmark = pytest.mark.django_db

URL = "/api/labels/"


@pytest.fixture
def desk() -> Desk:
    """Two raters, a chat each, all criteria answered."""
    desk = make_desk()
    for rater in desk.raters:
        answer_all(assignment := desk.taken(rater))
        assignment_submit(assignment=assignment, rater=rater)
    return desk


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


def listed(client: Client, **query: Any) -> list[tuple[str, str, str]]:
    answer = client.get(URL, query)
    assert answer.status_code == 200, answer.json()
    return [(row["chat_id"], row["criterion"], row["rater"]) for row in answer.json()["results"]]


def test_labels_use_the_names_of_the_files(desk: Desk, lead: Client) -> None:
    rows = lead.get(URL).json()["results"]
    assert len(rows) == 4
    assert rows[0].keys() == {"chat_id", "criterion", "rater", "value", "kind", "version", "created_at"}
    assert rows[0]["value"] is True


def test_drafts_are_not_labels_yet(desk: Desk, lead: Client) -> None:
    Label.objects.filter(rater=desk.rater).update(state="draft")
    assert {row[2] for row in listed(lead)} == {"rater-2"}


def test_labels_are_filtered_by_set_criterion_and_rater(desk: Desk, lead: Client) -> None:
    other = make_rubric("kind", name="Other")
    make_set(other, make_chat("elsewhere"), name="other")
    assert len(listed(lead, set="calibration")) == 4
    assert listed(lead, set="other") == []
    assert {row[1] for row in listed(lead, criterion="polite")} == {"polite"}
    assert {row[2] for row in listed(lead, rater="mara")} == {"mara"}
    assert len(listed(lead, set="calibration", criterion="polite", rater="mara")) == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("rater__user__password__startswith=p", "rater__user__password__startswith"),
        ("ordering=-id", "ordering"),
        ("set=nope", "set"),
        ("criterion=nope", "criterion"),
        ("rater=nope", "rater"),
        ("set=calibration&set__name=x", "set__name"),
    ],
)
def test_an_unknown_filter_is_refused_by_name(desk: Desk, lead: Client, query: str, field: str) -> None:
    answer = lead.get(f"{URL}?{query}")
    assert answer.status_code == 400
    assert set(answer.json()) == {field}


def test_pages_link_to_each_other_until_the_end(desk: Desk, lead: Client) -> None:
    seen: list[Any] = []
    url: str | None = f"{URL}?page_size=3"
    while url:
        page = lead.get(url).json()
        seen += page["results"]
        url = page["next"]
    assert seen == lead.get(URL).json()["results"]
    assert lead.get(f"{URL}?cursor=nonsense").status_code == 400


def test_holdout_chats_require_the_permission_to_see_them(desk: Desk, lead: Client, lead_user: User) -> None:
    label = Label.objects.order_by("pk").first()
    assert label is not None
    desk.chat_set.members.filter(chat=label.chat_id).update(split="holdout")
    assert len(listed(lead)) == 4
    secret = token_create(user=lead_user, name="a", scopes=["manage_labeling"], days=1).secret
    rows = Client().get(URL, headers={"Authorization": f"Token {secret}"}).json()["results"]
    assert len(rows) == 2


@pytest.mark.parametrize("role", [Role.RATER, Role.AUTHOR])
@pytest.mark.parametrize("route", ["api_labels", "api_sets"])
def test_others_than_leads_get_404(desk: Desk, role: Role, route: str) -> None:
    client = Client()
    client.force_login(make_user("somebody", role))
    assert client.get(reverse(route)).status_code == 404


def test_sets_have_the_ids_that_other_addresses_use(desk: Desk, lead: Client) -> None:
    (row,) = lead.get(reverse("api_sets")).json()["sets"]
    assert (row["id"], row["name"], row["chats"], row["labelled"]) == (desk.chat_set.pk, "calibration", 3, 2)


@pytest.mark.heavy
def test_a_page_of_labels_takes_the_same_number_of_queries_for_100_and_4(desk: Desk, lead: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            listed(lead, set="calibration", criterion="polite")
        return len(seen)

    few = queries()
    version = desk.criteria[0].versions.get()
    Label.objects.bulk_create(
        Label(
            chat=desk.chats[0],
            criterion=desk.criteria[0],
            rater=make_rater(),
            version=version,
            value=True,
            state="submitted",
            given_at=timezone.now(),
        )
        for _ in range(98)
    )
    assert queries() == few
    assert len(listed(lead, set="calibration", criterion="polite")) == 100
