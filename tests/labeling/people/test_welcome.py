"""The first account of an empty workspace: a lead, for whoever has the setup code; then the page is gone."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from labeling.models.people import Role, User, Workspace
from labeling.people.services.invitations import setup_code
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

OWN = {"username": "ines", "name": "", "email": ""} | dict.fromkeys(
    ("password1", "password2"), "a long own password"
)


def words(answer: Any) -> str:
    return " ".join(page_text(answer).split())


def test_an_empty_workspace_leads_to_welcome_and_its_code_creates_a_lead(client: Client) -> None:
    assert client.get("/", follow=True).redirect_chain[-1] == ("/welcome/", 302)
    code = setup_code()
    assert f'value="{code}"' in page_text(client.get(f"/welcome/?code={code}"))
    # Typed by hand in small letters it is the same code.
    answer = client.post("/welcome/", OWN | {"code": f" {code.lower()} "})
    assert answer.headers["Location"] == reverse("home")
    ines = User.objects.get()
    assert [group.name for group in ines.groups.all()] == [Role.LEAD]
    assert not ines.is_superuser
    assert client.get("/people/").status_code == 200
    later = Client().get(f"/welcome/?code={code}", follow=True)
    assert later.redirect_chain[-1][0].startswith("/accounts/login/")
    assert Client().post("/welcome/", OWN | {"username": "second", "code": code}).status_code == 404


@pytest.mark.parametrize("code", ["", "AAAAA-AAAAA-AAAAA-AAAAA"])
def test_without_the_code_nobody_takes_the_workspace_over(client: Client, code: str) -> None:
    answer = client.post("/welcome/", OWN | {"code": code})
    assert answer.status_code == 200
    assert not User.objects.exists()


def test_the_code_belongs_to_this_database(client: Client) -> None:
    code = setup_code()
    Workspace.objects.update(fence_secret=b"of another database")
    assert "This is not the setup code" in words(client.post("/welcome/", OWN | {"code": code}))


def test_a_workspace_with_an_account_has_no_welcome(client: Client) -> None:
    make_user("mara")
    assert client.get("/welcome/")["Location"] == reverse("account_login")
    assert client.get(reverse("account_login")).status_code == 200
    with pytest.raises(CommandError, match="has accounts already"):
        call_command("setup_code")


def test_the_command_prints_the_link_again() -> None:
    out = StringIO()
    call_command("setup_code", stdout=out)
    assert out.getvalue().strip().endswith(f"/welcome/?code={setup_code()}")
