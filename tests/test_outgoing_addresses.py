"""Every address that a user can set: none of the usual ways around a check leads to the inside."""

import re
from asyncio import BaseEventLoop
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as site_settings
from django.db import models
from django.test import Client
from pytest_django import Settings

from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.outbox import Delivery, WebhookEndpoint
from evaluation.outbox.services import outbox_publish_all
from evaluation.webhooks.worker import send_work
from labeling.models.people import User
from tests.factories.webhooks import make_webhook, receiver

pytestmark = pytest.mark.django_db(transaction=True)

# Where users set addresses: the form and the API, each with what else they ask for.
FORMS: dict[str, tuple[type[models.Model], str, dict[str, Any]]] = {
    "ConnectedEndpoint.address": (
        ConnectedEndpoint,
        "/models/endpoints/new/",
        {"name": "Inside", "api_key": "sk-inside-0123456789"},
    ),
    "WebhookEndpoint.address": (
        WebhookEndpoint,
        "/webhooks/new/",
        {"name": "Inside", "kinds": ["run.finished"]},
    ),
}
# This machine, spelled in ways that a check may not know; then other places inside.
INSIDE = (
    *("http://0/", "http://0.0.0.0/", "http://127.0.0.1/", "http://127.1/", "http://127.0.1/"),
    *("http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/"),
    *("http://127.0.0.1./", "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/"),
    *("http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/", "http://user:secret@127.0.0.1/"),
    *("http://api.openai.com@127.0.0.1/", "http://127.0.0.1/#@api.openai.com"),
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "http://10.0.0.4/",
    "http://192.168.1.1/",
    "http://172.16.0.1/",
    "http://[fe80::1]/",
    "http://0251.0376.0251.0376/",
    "http://2852039166/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "ftp://127.0.0.1/",
    "http://127。0。0。1/",
    "http:///127.0.0.1/",
    "http://[::ffff:169.254.169.254]/",
    "http://example.org\\@127.0.0.1/",
)


@pytest.fixture
def lead(lead_user: User, client: Client, settings: Settings, tmp_path: Path) -> Client:
    settings.LACE_ENDPOINT_KEY_FILE = tmp_path / "keys" / "endpoints.key"
    settings.LACE_LOOPBACK_ONLY = False
    client.force_login(lead_user)
    return client


def test_users_set_addresses_in_two_places_alone() -> None:
    """The provider of sign-on, the receiver of traces and the mail server are set by the operator."""
    named = re.compile(r"(^|_)(address|url|uri|host|issuer|link|callback)$")
    found = {
        f"{model.__name__}.{field.name}"
        for app in ("labeling", "evaluation", "alignment", "common")
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField | models.TextField) and named.search(field.name)
    }
    assert found - {"AuditEvent.address"} == set(FORMS)  # that one says whence a request came
    assert not apps.get_model("socialaccount.SocialApp").objects.exists()
    assert {"LACE_SSO_ISSUER", "SITE_URL"} <= set(dir(site_settings))


@pytest.mark.parametrize("place", FORMS)
def test_no_spelling_of_an_inside_address_is_stored(lead: Client, place: str) -> None:
    model, path, rest = FORMS[place]
    taken = []
    for address in INSIDE:
        answer = lead.post(path, rest | {"address": address})
        if answer.status_code != 200 or model._default_manager.filter(name="Inside").exists():
            taken.append(address)
            model._default_manager.filter(name="Inside").delete()
    assert taken == []


@pytest.fixture
def rebound(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A name that is public when it is entered and this machine when it is dialled."""
    real = BaseEventLoop.getaddrinfo

    async def resolve(self: Any, host: Any, port: Any, **kwargs: Any) -> Any:
        return await real(self, "127.0.0.1" if host == "rebound.test" else host, port, **kwargs)

    monkeypatch.setattr(BaseEventLoop, "getaddrinfo", resolve)
    yield


@pytest.mark.parametrize("host", ["rebound.test", "localhost"])
def test_a_name_that_leads_inside_when_it_is_dialled_gets_no_event(
    rebound: None, settings: Settings, host: str
) -> None:
    settings.LACE_LOOPBACK_ONLY = False
    with receiver() as kept:
        row = make_webhook(kept.address.replace("127.0.0.1", host))
        outbox_publish_all(kind="verdicts.stored", payloads=[{"chat_id": "c1"}])
        send_work(row.pk)
        assert not kept.seen
    assert "this machine itself" in Delivery.objects.get().error


def test_an_event_does_not_follow_a_redirect_inside(settings: Settings) -> None:
    settings.LACE_LOOPBACK_ONLY = True
    with receiver() as inside, receiver(lambda _: 302) as away:
        away.headers["Location"] = inside.address
        row = make_webhook(away.address)
        outbox_publish_all(kind="verdicts.stored", payloads=[{"chat_id": "c1"}])
        send_work(row.pk)
        assert len(away.seen) == 1 and not inside.seen
