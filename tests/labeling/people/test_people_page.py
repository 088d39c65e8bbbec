"""The People page: leads see and change accounts, and one lead who can sign in always remains."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django.asserts import assertContains

from labeling.models.people import ApiToken, AuditEvent, Invitation, Role, User
from labeling.people.services.people import LAST_LEAD
from labeling.people.services.tokens import token_create
from tests.factories.labelling_job import answer_all, make_desk, user_of
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

PEOPLE = "/people/"


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


def words(answer: Any) -> str:
    return " ".join(page_text(answer).split())


def person_url(user: User, what: str = "person") -> str:
    return reverse(f"labeling:{what}", args=[user.pk])


def change(lead: Client, user: User, **fields: Any) -> Any:
    return lead.post(person_url(user), {"name": "", "email": "", "roles": ["rater"]} | fields)


def test_the_page_shows_role_labels_and_state_in_a_fixed_number_of_queries(lead: Client) -> None:
    desk = make_desk(raters=1)
    answer_all(desk.taken())
    make_user("nora", Role.RATER, Role.AUTHOR)
    with CaptureQueriesContext(connection) as few:
        page = words(lead.get(PEOPLE))
    assert "Rater, Prompt author" in page
    for n in range(20):
        make_user(f"person-{n}", Role.RATER).groups.add(Group.objects.create(name=f"group {n}"))
    with CaptureQueriesContext(connection) as many:
        lead.get(PEOPLE)
    assert len(many) == len(few)


def test_a_new_account_has_no_password_until_its_user_sets_one_by_the_link(lead: Client) -> None:
    answer = lead.post(
        "/people/new/", {"username": "zoe", "name": "Zoë", "email": "z@x.org", "roles": "rater"}
    )
    zoe = User.objects.get(username="zoe")
    assert not zoe.has_usable_password()
    link = answer.context["link"]
    stranger = Client()
    form = stranger.get(link, follow=True)
    both = dict.fromkeys(("password1", "password2"), "a long new password")
    done = stranger.post(form.context["action_url"], both, follow=True)
    assert "Password set. You are signed in." in words(done)
    assert "This link no longer works" in words(Client().get(link))
    assert Client().get(link).status_code == 404
    event = AuditEvent.objects.get(verb="account created")
    assert event.detail == {"user": "zoe", "name": "Zoë", "email": "z@x.org", "roles": ["rater"]}
    assert not AuditEvent.objects.filter(verb="roles changed", object_id=zoe.pk).exists()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"username": "MARA"}, "An account with this user name exists; choose another one."),
        ({"username": "two words"}, "Use letters, digits and @ . + - _ only, without spaces."),
        ({"email": "MARA@x.org"}, "Another account has this e-mail address."),
        ({"roles": []}, "This field is required."),
    ],
)
def test_an_account_that_cannot_be_is_refused_at_its_field(
    lead: Client, fields: dict[str, Any], problem: str
) -> None:
    User.objects.filter(pk=make_user("mara").pk).update(email="mara@x.org")
    answer = lead.post("/people/new/", {"username": "zoe", "roles": ["rater"]} | fields)
    assert problem in words(answer)
    assert not User.objects.filter(username="zoe").exists()


def test_changed_roles_groups_and_names_are_logged_with_before_and_after(
    lead: Client, lead_user: User
) -> None:
    mara, night = make_user("mara", Role.RATER), Group.objects.create(name="Night shift")
    assert change(lead, mara, name="Mara L", roles=["author"], groups=[night.pk]).status_code == 302
    assert sorted(mara.groups.values_list("name", flat=True)) == ["Night shift", "author"]
    events = AuditEvent.objects.filter(object_id=mara.pk, object_type="labeling.user")
    assert {event.actor for event in events} == {lead_user}
    assert events.get(verb="account changed").detail["name"] == {"old": "", "new": "Mara L"}
    roles = events.get(verb="roles changed").detail["roles"]
    assert roles == {"old": ["rater"], "new": ["Night shift", "author"]}


def test_deactivating_says_what_is_open_and_ends_sessions_tokens_and_leases(lead: Client) -> None:
    desk = make_desk(chats=1, raters=2, overlap=1)
    leased, mara = desk.taken(), user_of(desk.rater)
    secret = token_create(user=mara, name="nightly", scopes=["label_chats"], days=1).secret
    browser = Client()
    browser.force_login(mara)
    said = words(lead.get(person_url(mara, "person_deactivate")))
    assert "1 chat in work returns to the queue." in said
    assert "1 API token is revoked." in said
    assert lead.post(person_url(mara, "person_deactivate")).status_code == 302
    assert browser.get("/queue/").status_code == 302
    assert Client().get("/api/queue/", headers={"Authorization": f"Token {secret}"}).status_code == 401
    # What ended stays ended when the account is active again.
    lead.post(person_url(mara, "person_activate"))
    assert browser.get("/queue/").status_code == 302
    assert not ApiToken.objects.filter(user=mara, revoked_at=None).exists()
    # The chat is free for the next rater at once.
    assert desk.taken(desk.raters[1]).chat_id == leased.chat_id


def test_the_last_lead_is_neither_demoted_nor_deactivated(lead: Client, lead_user: User) -> None:
    assert LAST_LEAD in words(change(lead, lead_user))
    other = make_user("ola", Role.LEAD)
    # A lead who has no password yet cannot sign in, so does not count.
    other.set_unusable_password()
    other.save()
    assert LAST_LEAD in words(change(lead, lead_user))
    other.set_password("correct horse battery")
    other.save()
    assert change(lead, lead_user).status_code == 302
    assert lead.get(PEOPLE).status_code == 404


def test_nobody_deactivates_their_own_account(lead: Client, lead_user: User) -> None:
    make_user("ola", Role.LEAD)
    answer = lead.post(person_url(lead_user, "person_deactivate"), follow=True)
    assert "You cannot deactivate your own account" in words(answer)
    assert User.objects.get(pk=lead_user.pk).is_active


def test_a_lead_has_no_power_over_a_superuser(lead: Client) -> None:
    root = User.objects.create_superuser("root", password="the root of it all")
    refused = "Only a superuser can change the account of a superuser."
    assert refused in words(change(lead, root))
    for what in ("person_password", "person_deactivate"):
        assert refused in words(lead.post(person_url(root, what), follow=True))
    root.refresh_from_db()
    assert root.is_active and root.check_password("the root of it all")


@pytest.mark.parametrize("role", [Role.RATER, Role.AUTHOR])
def test_nobody_below_lead_finds_people(client: Client, role: Role) -> None:
    client.force_login(make_user("mara", role))
    assert client.get(PEOPLE).status_code == 404
    assert "People" not in page_text(client.get("/tokens/"))


def test_a_group_that_a_job_names_stays(lead: Client) -> None:
    assert lead.post("/people/groups/", {"name": " Night  shift "}).status_code == 302
    night = Group.objects.get(name="Night shift")
    desk = make_desk(raters=1)
    desk.job.group = night
    desk.job.save()
    delete = reverse("labeling:group_delete", args=[night.pk])
    assert "is named by 1 labelling jobs" in words(lead.post(delete, follow=True))
    desk.job.group = None
    desk.job.save()
    lead.post(delete)
    assert not Group.objects.filter(pk=night.pk).exists()
    role = reverse("labeling:group_delete", args=[Group.objects.get(name=Role.LEAD).pk])
    assert "cannot be deleted" in words(lead.post(role, follow=True))


def test_the_form_to_invite_works_on_the_page_that_refuses_a_group(lead: Client) -> None:
    refused = lead.post(reverse("labeling:group_new"), {"name": ""})
    assertContains(refused, f'class="line invite" method="post" action="{PEOPLE}"')
    lead.post(PEOPLE, {"name": "Zoë", "role": "rater"})
    assert Invitation.objects.get().name == "Zoë"


def test_a_page_notes_when_its_user_was_last_seen_once_an_hour(client: Client) -> None:
    mara = make_user("mara", Role.RATER)
    User.objects.update(last_seen_at=None)
    client.force_login(mara)
    with CaptureQueriesContext(connection) as asked:
        for _ in range(3):
            client.get("/queue/")
    assert len([one for one in asked if "last_seen_at" in one["sql"] and "UPDATE" in one["sql"]]) == 1
    mara.refresh_from_db()
    assert mara.last_seen_at is not None
