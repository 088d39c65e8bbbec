"""What browsers are told and given: headers of every answer, and cookies, on a site behind TLS."""

import json
from collections.abc import Iterator

import pytest
from django.test import Client

from labeling.models.people import User
from lace_site.middleware import PERMISSIONS_POLICY
from tests.factories.sites import HOST, Site

# The first one waits for the server, which makes its database.
pytestmark = pytest.mark.timeout(600)
# Answers of every kind: a page, a redirect, a file, an error, the API, a probe, a page of the docs.
PLACES = ("/accounts/login/", "/", "/static/common/base.css", "/no-such-page/", "/api/runs/", "/healthz")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Gunicorn with the settings of production; its proxy is this test."""
    with Site(tmp_path_factory.mktemp("data"), HTTPS="on") as running:
        yield running


@pytest.fixture(scope="module")
def signed_in(site: Site) -> dict[str, str]:
    """The cookies of a lead who has signed in."""
    page = site.get("/accounts/login/")
    token = page.cookies[next(name for name in page.cookies if "csrftoken" in name)]
    answer = site.post(
        "/accounts/login/",
        {"login": "ines", "password": "correct horse battery", "csrfmiddlewaretoken": token},
        cookies=page.cookies,
    )
    assert answer.status == 302, answer.body
    return page.cookies | answer.cookies


@pytest.mark.parametrize("path", PLACES)
def test_every_answer_keeps_browsers_on_tls_and_out_of_frames(site: Site, path: str) -> None:
    headers = site.get(path).headers
    assert headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Permissions-Policy"] == PERMISSIONS_POLICY
    rules = headers["Content-Security-Policy"].split("; ")
    assert {"object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} <= set(rules)
    assert "unsafe-inline" not in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("path", PLACES)
def test_texts_name_their_letters(site: Site, path: str) -> None:
    kind = site.get(path).headers.get("Content-Type", "application/json")
    assert kind == "application/json" or "charset=" in kind


def test_cookies_belong_to_this_host_alone(site: Site, signed_in: dict[str, str]) -> None:
    set_by = site.get("/accounts/login/").set_cookies + site.last_sign_in
    assert len(set_by) >= 3
    for cookie in set_by:
        name, *rules = (part.strip().lower() for part in cookie.split(";"))
        assert name.startswith("__host-"), cookie
        assert "secure" in rules and "path=/" in rules and "samesite=lax" in rules
        assert not any(rule.startswith("domain") for rule in rules)
        assert len(cookie) < 4096
        assert "httponly" in rules or "csrftoken" in name


def test_pages_of_a_signed_in_user_stay_in_no_cache(site: Site, signed_in: dict[str, str]) -> None:
    page = site.get("/people/", cookies=signed_in)
    assert (page.status, page.headers["Cache-Control"]) == (200, "private, no-store")


def test_a_page_without_tls_leads_to_tls_and_the_api_refuses(site: Site) -> None:
    page = site.get("/people/", tls=False)
    assert (page.status, page.headers["Location"]) == (301, f"https://{HOST}/people/")
    api = site.get("/api/runs/", tls=False, headers={"Authorization": "Token abc"})
    assert (api.status, json.loads(api.body)) == (403, {"detail": "Use HTTPS."})


def test_a_forged_name_of_the_host_is_refused(site: Site) -> None:
    assert site.get("/accounts/login/", headers={"Host": "evil.example"}).status == 400


def test_the_server_answers_no_trace_and_lists_no_folder(site: Site) -> None:
    assert site.send("TRACE", "/accounts/login/").status in (403, 404, 405)
    for path in ("/static/", "/static/common/", "/.git/config", "/.env", "/manage.py", "/var/"):
        assert site.get(path).status in (302, 404), path


def test_two_lengths_of_one_request_are_refused(site: Site) -> None:
    """A proxy and the server that read different lengths could be made to mix two requests."""
    raw = (
        f"POST /accounts/login/ HTTP/1.1\r\nHost: {HOST}\r\nX-Forwarded-Proto: https\r\n"
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin/ HTTP/1.1\r\n\r\n"
    )
    assert site.raw(raw.encode()).split(b"\r\n")[0].split()[1] in (b"400", b"403")


def test_a_body_over_the_limit_is_refused(site: Site, signed_in: dict[str, str]) -> None:
    large = b'{"comment_required": "' + b"x" * 10_500_000 + b'"}'
    token = next(value for name, value in signed_in.items() if "csrftoken" in name)
    headers = {"Content-Type": "application/json", "X-CSRFToken": token, "Referer": f"https://{HOST}/"}
    answer = site.send("PATCH", "/api/workspace/", body=large, cookies=signed_in, headers=headers)
    assert answer.status == 400


def test_version_and_internals_stay_inside(site: Site) -> None:
    answer = site.get("/no-such-page/")
    assert "Traceback" not in answer.body and "Django" not in answer.body
    assert not any(digit.isdigit() for digit in answer.headers.get("Server", ""))


@pytest.mark.django_db
def test_signing_out_clears_what_the_browser_kept(client: Client, lead_user: User) -> None:
    client.force_login(lead_user)
    assert client.post("/accounts/logout/")["Clear-Site-Data"] == '"cache"'
