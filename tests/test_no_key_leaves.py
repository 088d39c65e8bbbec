"""The key of a connected endpoint leaves in no export, archive, API answer, page of the admin or message."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from alignment.archive.services import archive_write
from alignment.exports.core import EXPORTS
from common.commands import CommandExit
from common.queue import enqueue_row
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.runs import Run
from labeling.models.people import AuditEvent, Role
from tests.factories.rows import make_user
from tests.factories.runs import always, point_at, workspace
from tests.stub_endpoint import Answer, StubEndpoint, StubReply

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "sk-canary-7b1d0123456789QRST"


def denied(status: int, echo: dict[str, Any]) -> Answer:
    return lambda body: StubReply(status=status, raw=json.dumps(echo).encode())


@pytest.fixture
def lead(settings: Settings, tmp_path: Path) -> Client:
    """A lead who may also open the admin, after a run with an endpoint that echoes the headers it got."""
    settings.LACE_ENDPOINT_KEY_FILE = tmp_path / "keys" / "endpoints.key"
    user = make_user("lead", Role.LEAD)
    user.is_staff = user.is_superuser = True
    user.save()
    client = Client()
    client.force_login(user)
    workspace(chats=1)
    point_at(settings, "http://127.0.0.1:9/v1")
    with StubEndpoint(always(True)) as stub:
        form = {"name": "Office", "address": stub.base_url, "api_key": CANARY, "models": "m"}
        client.post("/models/endpoints/new/", form)
        call_command("evaluate", set="calibration", engine="direct", endpoint="Office")
        echo = {"error": {"message": "denied", "headers": {"Authorization": f"Bearer {CANARY}"}}}
        for status in (400, 401, 500):
            stub.answer = denied(status, echo)
            with pytest.raises(CommandExit):
                call_command(
                    "evaluate", set="calibration", engine="direct", endpoint="Office", replicate=status
                )
            client.post(f"/models/endpoints/{ConnectedEndpoint.objects.get().pk}/test/")
        assert any(CANARY in one.headers["Authorization"] for one in stub.seen)
    return client


def hidden(content: bytes | str) -> bool:
    """Whether neither the key nor its middle is in a text, or in a member of a ZIP file."""
    raw = content.encode() if isinstance(content, str) else content
    if raw.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return all(hidden(archive.read(name)) for name in archive.namelist())
    return CANARY.encode() not in raw and CANARY[4:20].encode() not in raw


def body(answer: Any) -> bytes:
    """The whole answer, streamed or not."""
    content: bytes = b"".join(answer.streaming_content) if answer.streaming else answer.content
    answer.close()
    return content


def test_no_export_and_no_archive_holds_the_key(lead: Client, tmp_path: Path) -> None:
    chat_set = Run.objects.first().chat_set_id  # type: ignore[union-attr]
    taken = 0
    for what, export in EXPORTS.items():
        for kind in export.kinds:
            answer = lead.get(reverse("alignment:export_file", args=[chat_set, what, kind]))
            assert hidden(body(answer)), f"{what}.{kind}"
            taken += answer.status_code == 200
    assert taken > 10
    archive_write(tmp_path / "workspace.zip")
    assert hidden((tmp_path / "workspace.zip").read_bytes())
    call_command("backup", str(tmp_path / "backup.zip"))
    assert hidden((tmp_path / "backup.zip").read_bytes())


def admin_pages() -> Iterator[str]:
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        if row := model._default_manager.first():
            yield reverse(f"{name}_change", args=[row.pk])
            yield reverse(f"{name}_history", args=[row.pk])


def test_no_answer_of_the_api_and_no_page_of_the_admin_holds_the_key(lead: Client) -> None:
    schema = body(lead.get("/api/schema/?format=json"))
    routes = [path for path, acts in json.loads(schema)["paths"].items() if "get" in acts]
    run = Run.objects.order_by("pk").last()
    assert run is not None
    asked = {re.sub(r"\{[^}]+\}", str(run.pk), path) for path in routes}
    for path in [*sorted(asked), *admin_pages(), "/audit/", f"/runs/{run.pk}/"]:
        assert hidden(body(lead.get(path))), path
    assert hidden(schema)


def test_no_row_and_no_message_of_a_queue_holds_the_key(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in apps.get_models():
        for row in model._default_manager.values():
            assert hidden(repr(row)), model._meta.label
    assert AuditEvent.objects.filter(verb__startswith="endpoint").exists()
    sent: list[Any] = []
    monkeypatch.setattr("common.queue.send_task", lambda *args, **options: sent.append((args, options)))
    enqueue_row("evaluation.tasks.process_units", Run.objects.all(), Run.objects.latest("pk").pk)
    assert sent and hidden(repr(sent))
