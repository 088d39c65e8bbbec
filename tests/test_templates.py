"""Every template compiles; error pages and the page without a role are rendered as a visitor meets them."""

from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import get_template
from django.test import Client, override_settings
from django.urls import include, path

from tests.factories.rows import make_user

TEMPLATES = Path(settings.BASE_DIR) / "templates"
NAMES = sorted(str(one.relative_to(TEMPLATES)) for one in TEMPLATES.rglob("*.*") if one.is_file())
ERRORS = {"400": BadRequest, "403": PermissionDenied, "404": Http404, "500": RuntimeError}


@login_not_required
def fails(request: HttpRequest, kind: str) -> HttpResponse:
    raise ERRORS[kind]("no reader should see this")


urlpatterns = [path("fails/<str:kind>/", fails), path("", include("lace_site.urls"))]


def test_every_template_compiles() -> None:
    assert len(NAMES) > 100
    for name in NAMES:
        get_template(name)


@pytest.mark.django_db
@override_settings(ROOT_URLCONF=__name__)
@pytest.mark.parametrize("signed_in", [False, True])
@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_a_page(kind: str, signed_in: bool) -> None:
    client = Client(raise_request_exception=False)
    if signed_in:
        client.force_login(make_user("nobody"))
    answer = client.get(f"/fails/{kind}/")
    page = answer.content.decode()
    assert answer.status_code == int(kind)
    assert "<h1>" in page and "no reader should see this" not in page


@pytest.mark.django_db
def test_a_form_without_its_token_has_a_page() -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/accounts/login/", {"username": "ines"})
    assert answer.status_code == 403
    assert "<h1>" in answer.content.decode()


@pytest.mark.django_db
def test_an_account_without_a_role_is_told_whom_to_ask() -> None:
    client = Client()
    client.force_login(make_user("new.person"))
    answer = client.get("/")
    assert answer.status_code == 403
    assert "Ask a lead to give <strong>new.person</strong> a role" in answer.content.decode()


def test_every_page_at_the_top_is_tried_here() -> None:
    tried = {f"{kind}.html" for kind in ERRORS} | {"403_csrf.html", "no_role.html"}
    tried |= {"503.html", "429.html"}  # tests/test_database_down.py, labeling/people/test_sign_in.py
    frames = {"base.html"}  # behind every other page
    assert {one.name for one in TEMPLATES.glob("*.html")} == tried | frames
