"""API tokens: shown once, stored as a digest, limited to their user's permissions, revoked at once."""

import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from common.problems import FieldProblem
from labeling.models.chats import Chat
from labeling.models.people import ApiToken, AuditEvent, Role, User
from labeling.people.services.tokens import token_create, token_revoke
from tests.factories.labelling_job import make_desk, user_of
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

PAGE = "/tokens/"


def secret_of(user: User, *scopes: str, days: int | None = 30, name: str = "export job") -> str:
    return token_create(user=user, name=name, scopes=scopes, days=days).secret


def called(secret: str, url: str = "", *, method: str = "get", **more: Any) -> Any:
    """A program's call: no session, no CSRF token."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    call = getattr(client, method)
    return call(url or reverse("api_runs"), headers={"Authorization": f"Token {secret}"}, **more)


# ---------- the header ----------


def test_a_token_grants_its_scopes(lead_user: User) -> None:
    assert called(secret_of(lead_user, "see_judge")).status_code == 200
    assert called(secret_of(lead_user, "edit_prompts", name="b")).status_code == 404


def test_a_token_needs_no_csrf_token(lead_user: User) -> None:
    answer = called(secret_of(lead_user, "start_runs"), method="post", content_type="application/json")
    assert answer.status_code == 400, answer.content


def test_a_token_is_limited_to_its_users_current_permissions(lead_user: User) -> None:
    secret = secret_of(lead_user, "see_judge")
    lead_user.groups.clear()
    assert called(secret).status_code == 404


def test_a_superusers_token_is_limited_to_its_scopes(lead_user: User) -> None:
    User.objects.filter(pk=lead_user.pk).update(is_superuser=True)
    lead_user.refresh_from_db()
    assert called(secret_of(lead_user, "label_chats")).status_code == 404


def test_holdout_chats_require_the_scope_too(lead_user: User) -> None:
    desk = make_desk()
    desk.chat_set.members.filter(position=3).update(split="holdout")
    seen = {}
    for scopes in (("see_judge",), ("see_judge", "see_holdout")):
        user = User.objects.get(pk=lead_user.pk)
        user.scopes = frozenset(scopes)
        seen[scopes] = Chat.objects.visible_to(user).count()
    assert list(seen.values()) == [2, 3]
    assert Chat.objects.visible_to(User.objects.get(pk=lead_user.pk)).count() == 3


def test_a_raters_token_labels_the_raters_own_chats() -> None:
    desk = make_desk()
    secret = secret_of(user_of(desk.rater), "label_chats")
    assignment = desk.taken()
    url = reverse("api_assignment", args=[assignment.pk])
    assert called(secret, url).json()["chat"]["id"] == assignment.chat.external_id
    other = secret_of(user_of(desk.raters[1]), "label_chats")
    assert called(other, url).status_code == 404


@pytest.mark.parametrize("end", ["revoked", "expired", "account switched off", "never made", "empty"])
def test_an_invalid_token_is_401_and_asks_for_another(lead_user: User, end: str) -> None:
    made = token_create(user=lead_user, name="a", scopes=["see_judge"], days=1)
    secret = made.secret
    if end == "revoked":
        token_revoke(token=made.token, by=lead_user)
    elif end == "expired":
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif end == "account switched off":
        User.objects.filter(pk=lead_user.pk).update(is_active=False)
    else:
        secret = "" if end == "empty" else secret[:-1]
    answer = called(secret)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Token realm="api"')
    assert answer.json() == {"detail": "The token is unknown, revoked or expired."}


def test_an_invalid_token_is_refused_even_with_a_session(lead_user: User) -> None:
    client = Client()
    client.force_login(lead_user)
    assert client.get(reverse("api_runs"), headers={"Authorization": "Token nonsense"}).status_code == 401


def test_a_token_is_read_from_the_header_only(lead_user: User) -> None:
    secret, url = secret_of(lead_user, "see_judge"), reverse("schema")
    for query in ({"token": secret}, {"Authorization": f"Token {secret}"}):
        assert Client().get(url, query).status_code == 403
    assert Client().get(url, headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def test_a_token_opens_no_page(lead_user: User) -> None:
    answer = called(secret_of(lead_user, "see_judge"), reverse("labeling:set_list"))
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(reverse("account_login"))


def test_its_use_is_recorded_once_a_minute(
    lead_user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    secret = secret_of(lead_user, "see_judge")
    url = reverse("schema")
    with django_assert_num_queries(3):  # token, its use, the permissions of user and groups
        called(secret, url)
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    with django_assert_num_queries(2):
        called(secret, url)
    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    called(secret, url)
    assert ApiToken.objects.filter(last_used_at__gte=first).exists()


# ---------- where it must never stand ----------


def everything_stored() -> str:
    """Every value of every table."""
    rows = [
        row
        for model in apps.get_models()
        for row in model._base_manager.values_list().iterator(chunk_size=500)
    ]
    return repr(rows)


@pytest.mark.parametrize("debug", [False, True])
def test_the_token_is_in_no_log_no_table_and_no_error_page(
    lead_user: User,
    settings: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    debug: bool,
) -> None:
    settings.DEBUG = debug
    caplog.set_level(logging.DEBUG)
    client = Client()
    client.force_login(lead_user)
    page = client.post(PAGE, {"name": "a", "scopes": ["see_judge"], "expires": 30})
    secret = str(page.context["new_token"].secret)
    assert secret in page.content.decode()
    assert called(secret).status_code == 200

    def broken(*args: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr("evaluation.runs.api.run_list", broken)
        failed = called(secret)
    assert failed.status_code == 500
    monkeypatch.setattr("labeling.people.services.tokens._digest", broken)
    refused = called(secret)
    assert refused.status_code == 500
    assert (b"RuntimeError" in failed.content + refused.content) is debug
    for text in (failed.content.decode(), refused.content.decode() if not debug else "", caplog.text):
        assert secret not in text
    assert secret not in everything_stored()
    assert secret not in repr(page.context["new_token"])


def test_the_database_holds_a_sha256_digest(lead_user: User) -> None:
    secret = secret_of(lead_user, "see_judge")
    assert re.fullmatch("lace_[A-Za-z0-9_-]{43}", secret)
    assert re.fullmatch("[0-9a-f]{64}", ApiToken.objects.get().digest)


# ---------- making and ending ----------


def test_only_own_permissions_can_be_scopes(rater_user: User) -> None:
    for scopes in ([], ["see_judge"], ["label_chats", "see_judge"], ["nonsense"]):
        with pytest.raises(FieldProblem, match="scopes: choose from your own permissions"):
            token_create(user=rater_user, name="a", scopes=scopes, days=None)
    assert not ApiToken.objects.exists()


def test_the_name_of_an_ended_token_can_be_used_again(lead_user: User) -> None:
    made = token_create(user=lead_user, name="a", scopes=["see_judge"], days=None)
    with pytest.raises(FieldProblem, match="name: you have a token with this name"):
        secret_of(lead_user, "see_judge", name="a")
    token_revoke(token=made.token, by=lead_user)
    secret_of(lead_user, "see_judge", name="a")
    secret_of(make_user("other", Role.LEAD), "see_judge", name="a")


def test_creating_and_revoking_are_logged_without_the_token(lead_user: User) -> None:
    made = token_create(user=lead_user, name="a", scopes=["see_judge"], days=7)
    for _ in range(2):
        token_revoke(token=made.token, by=lead_user)
    events = AuditEvent.objects.order_by("pk")
    assert [(event.verb, event.object_id, event.actor) for event in events] == [
        ("token created", made.token.pk, lead_user),
        ("token revoked", made.token.pk, lead_user),
    ]
    assert events[0].detail == {"name": "a", "scopes": ["see_judge"], "days": 7}


# ---------- the page ----------


def test_the_page_creates_a_token_and_shows_it_once(lead_user: User) -> None:
    client = Client()
    client.force_login(lead_user)
    form = {"name": "nightly export", "scopes": ["see_judge", "manage_labeling"], "expires": 90}
    made = client.post(PAGE, form)
    secret = made.context["new_token"].secret
    assert "no-store" in made.headers["Cache-Control"]
    assert called(secret).status_code == 200
    again = client.get(PAGE).content.decode()
    assert "nightly export" in again
    assert secret not in again
    token = ApiToken.objects.get()
    assert token.expires_at is not None
    assert timedelta(days=89) < token.expires_at - timezone.now() < timedelta(days=91)


def test_sending_the_form_twice_creates_one_token(lead_user: User) -> None:
    client = Client()
    client.force_login(lead_user)
    form = {"name": "a", "scopes": ["see_judge"], "expires": 0}
    client.post(PAGE, form)
    assert "You have a token with this name" in client.post(PAGE, form).content.decode()
    assert ApiToken.objects.get().expires_at is None


def test_the_page_offers_own_permissions_only(rater_user: User) -> None:
    client = Client()
    client.force_login(rater_user)
    page = client.get(PAGE)
    assert [code for code, _ in page.context["form"].fields["scopes"].choices] == ["label_chats"]
    refused = client.post(PAGE, {"name": "a", "scopes": ["see_judge"], "expires": 30})
    assert refused.context["new_token"] is None
    assert not ApiToken.objects.exists()


def test_users_see_and_revoke_only_their_own_tokens(lead_user: User, rater_user: User) -> None:
    theirs = token_create(user=rater_user, name="SECRET NAME", scopes=["label_chats"], days=None).token
    client = Client()
    client.force_login(lead_user)
    assert "SECRET NAME" not in client.get(PAGE).content.decode()
    revoke = reverse("labeling:token_revoke", args=[theirs.pk])
    assert client.post(revoke).status_code == 404
    client.force_login(rater_user)
    assert client.get(revoke).status_code == 405
    assert client.post(revoke, follow=True).context["tokens"][0].state == "revoked"


def test_a_hostile_name_is_shown_as_text(lead_user: User) -> None:
    token_create(user=lead_user, name="<b>\u202ex</b>", scopes=["see_judge"], days=None)
    client = Client()
    client.force_login(lead_user)
    page = client.get(PAGE).content.decode()
    assert "<b>" not in page
    assert "RLO" in page


def test_an_account_without_permissions_sees_a_notice(db: None) -> None:
    client = Client()
    client.force_login(make_user("nobody"))
    assert "no permissions" in client.get(PAGE).content.decode()


def test_the_openapi_document_names_the_scheme(lead_user: User) -> None:
    client = Client()
    client.force_login(lead_user)
    text = client.get(reverse("schema"), {"format": "json"}).json()
    assert text["components"]["securitySchemes"]["token"]["name"] == "Authorization"
    assert {"token": []} in text["paths"]["/api/runs/"]["get"]["security"]
    operations = [row for path in text["paths"].values() for row in path.values()]
    assert all("401" in row["responses"] for row in operations)
