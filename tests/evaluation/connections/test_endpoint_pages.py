"""The pages of endpoints: leads connect, change and remove them; a key goes in and never comes out."""

import io
import logging
import re
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from common.commands import CommandExit
from evaluation.connections import views
from evaluation.endpoints.core.presets import PRESETS
from evaluation.gateway.current import connected, endpoint_at
from evaluation.gateway.keys import KeyUnreadable, Secret, decrypt, encrypt, key_hint
from evaluation.judges.queries.profiles import default_profile, profile_choice
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import ModelCall, Run
from labeling.models.people import AuditEvent, Role
from tests.factories.rows import make_user
from tests.factories.runs import always, point_at, workspace
from tests.stub_endpoint import StubEndpoint, StubReply, fixed

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "sk-canary-5f3c0123456789WXYZ"
NEW = "/models/endpoints/new/"


@pytest.fixture
def lead() -> Client:
    client = Client()
    client.force_login(make_user("lead", Role.LEAD))
    return client


@pytest.fixture(autouse=True)
def key_file(settings: Settings, tmp_path: Path) -> Path:
    settings.LACE_ENDPOINT_KEY_FILE = tmp_path / "keys" / "endpoints.key"
    return tmp_path / "keys" / "endpoints.key"


def post(client: Client, to: str, **fields: Any) -> str:
    """Send the form; the page that follows."""
    fields = {"name": "Office", "address": "https://office.test/v1", "api_key": CANARY, **fields}
    return client.post(to, fields, follow=True).content.decode()


def path(act: str = "", row: ConnectedEndpoint | None = None) -> str:
    pk = (row or ConnectedEndpoint.objects.get()).pk
    return f"/models/endpoints/{pk}/{act}"


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_lead_connects_an_endpoint_and_the_key_is_stored_encrypted(lead: Client, key_file: Path) -> None:
    page = post(lead, NEW, models="small, 0.15, 0.60, 0.075\nlarge", requests_per_minute="60")
    row = ConnectedEndpoint.objects.get()
    assert (row.address, row.model_names) == ("https://office.test/v1", ["small", "large"])
    assert row.prices == {"small": {"input": "0.15", "output": "0.60", "cached_input": "0.075"}}
    assert CANARY not in row.key and connected(row).api_key == CANARY
    assert "Key set, ends with WXYZ" in text_of(page) and CANARY not in page
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700
    event = AuditEvent.objects.get(verb="endpoint connected")
    assert event.detail == {"name": "Office", "address": "https://office.test/v1", "key": True}


@pytest.mark.parametrize("preset", PRESETS, ids=[preset.id for preset in PRESETS])
def test_a_preset_fills_in_what_is_known(lead: Client, preset: Any) -> None:
    page = lead.get(NEW, {"preset": preset.id}).content.decode()
    assert f'value="{preset.address}"' in page or not preset.address
    assert all(sentence.split("'")[0] in page for sentence in preset.differs)


def test_the_field_of_the_key_is_never_filled(lead: Client) -> None:
    post(lead, NEW)
    page = lead.get(path("edit/")).content.decode()
    field = re.search(r"<input[^>]*api_key[^>]*>", page)
    assert field and 'type="password"' in field[0] and "value" not in field[0]
    assert 'autocomplete="new-password"' in field[0]
    refused = post(lead, path("edit/"), name="")
    assert CANARY not in refused and "enter it again" in refused


def test_an_empty_field_keeps_the_key_and_another_one_replaces_it(lead: Client) -> None:
    post(lead, NEW)
    post(lead, path("edit/"), api_key="", name="Office 2")
    row = ConnectedEndpoint.objects.get()
    assert (row.name, connected(row).api_key) == ("Office 2", CANARY)
    post(lead, path("edit/"), api_key="short")
    row.refresh_from_db()
    assert (connected(row).api_key, row.key_hint) == ("short", "")
    post(lead, path("edit/"), api_key="", remove_key="on")
    row.refresh_from_db()
    assert (row.key, connected(row).headers) == ("", {})


def test_another_address_needs_the_key_again(lead: Client) -> None:
    """Else a lead could send a key that nobody may read to a server of their own."""
    post(lead, NEW)
    page = post(lead, path("edit/"), address="https://mine.test/v1", api_key="")
    assert "Is needed again for another address" in page
    assert ConnectedEndpoint.objects.get().address == "https://office.test/v1"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"address": "ftp://x.test"}, "must start with http"),
        ({"address": "http://10.0.0.4/v1"}, "private network"),
        ({"address": "http://u:p@x.test/v1"}, "user name or password"),
        ({"api_key": "two words"}, "holds a space"),
        ({"models": "m, 1"}, "line 1: enter input and output price"),
        ({"models": "m, a, b"}, "is no price"),
        ({"models": "m\nm"}, "listed twice"),
        ({"api_version": "2024?x=1"}, "such as 2024-10-21"),
        ({"name": ""}, "required"),
    ],
)
def test_a_wrong_field_says_what_is_wrong_and_nothing_is_stored(
    lead: Client, fields: dict[str, str], words: str
) -> None:
    page = post(lead, NEW, **fields)
    assert words in page.lower() and CANARY not in page
    assert not ConnectedEndpoint.objects.exists()


def test_a_used_name_and_address_are_refused(lead: Client, settings: Settings) -> None:
    post(lead, NEW)
    assert "another endpoint has this name" in post(lead, NEW, address="https://b.test/v1").lower()
    assert "the endpoint office has this address" in post(lead, NEW, name="B").lower()
    point_at(settings, "https://own.test/v1")
    assert "own endpoint" in post(lead, NEW, name="B", address="https://own.test/v1/")


def test_the_list_names_each_state_with_the_error_verbatim_and_escaped(lead: Client) -> None:
    said = b"<script>alert(1)</script> no such model"
    with StubEndpoint(lambda body: StubReply(status=404, raw=said)) as stub:
        post(lead, NEW, address=stub.base_url, models="m")
        assert "Never tested" in lead.get("/models/").content.decode()
        lead.post(path("test/"))
        page = lead.get("/models/").content.decode()
    assert "1 of 2 endpoints is failing" in text_of(page) and "Failing" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; no such model" in page and "<script>alert" not in page


def test_models_that_a_test_found_are_added_by_ticking_them(lead: Client) -> None:
    with StubEndpoint(fixed("ready")) as stub:
        stub.models = ["a", "b", "c"]
        post(lead, NEW, address=stub.base_url)
        lead.post(path("test/"))
        assert "3 more found at the endpoint" in text_of(lead.get(path()).content.decode())
        lead.post(path("offer/"), {"model": ["c", "a", "not-there"]})
        assert ConnectedEndpoint.objects.get().model_names == ["c", "a"]


def test_the_run_form_and_the_profile_form_offer_the_models(lead: Client, settings: Settings) -> None:
    chat_set = workspace(chats=1)
    point_at(settings, "http://127.0.0.1:9/v1")
    profiles_ensure()
    with StubEndpoint(always(True)) as stub:
        post(lead, NEW, address=stub.base_url, models="office-model")
        assert '<optgroup label="Office">' in lead.get("/runs/new/").content.decode()
        form = {
            "set": chat_set.pk,
            "profile": default_profile().pk,  # type: ignore[union-attr]
            "mode": "live",
            "model_at": f"{stub.base_url} office-model",
        }
        lead.post("/runs/new/", form)
    judge = Run.objects.get().judge
    assert (judge.endpoints, judge.model) == ([stub.base_url], "office-model")
    page = lead.get("/profiles/new/").content.decode()
    assert f'<option value="{stub.base_url}">Office</option>' in page
    assert '<option value="office-model">' in page


def test_the_profile_form_gives_each_role_its_endpoint(lead: Client, settings: Settings) -> None:
    point_at(settings, "http://127.0.0.1:9/v1")
    profiles_ensure()
    post(lead, NEW, models="office-model")
    recipe = {"name": "Mixed", "engine": "debate", "samples": 1, "knowledge": "static", "grouping": "auto"}
    recipe |= {"passage_tokens": 1500, "layout": "auto", "role_in": "user"}
    recipe["endpoint_judge"] = "https://office.test/v1"
    refused = lead.post("/profiles/new/", recipe).content.decode()
    assert "Enter its model at that endpoint." in refused
    lead.post("/profiles/new/", recipe | {"model_judge": "office-model"})
    profile = JudgeProfile.objects.get(name="Mixed")
    assert profile_choice(profile).endpoints == {"judge": "https://office.test/v1"}
    assert "office-model at https://office.test/v1" in lead.get(f"/profiles/{profile.pk}/").content.decode()


def test_queries_do_not_grow_with_endpoints_and_models(lead: Client, settings: Settings) -> None:
    point_at(settings, "http://127.0.0.1:9/v1")
    post(lead, NEW, models="a\nb")

    def queries() -> int:
        lead.get("/models/")
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert lead.get("/models/").status_code == 200
        return len(captured)

    few = queries()
    for number in range(8):
        post(lead, NEW, name=f"E{number}", address=f"https://e{number}.test/v1", models="a\nb\nc")
    assert queries() == few


# ---------- the key


def test_the_key_appears_nowhere(
    lead: Client, settings: Settings, caplog: pytest.LogCaptureFixture, tmp_path: Path, capsys: Any
) -> None:
    """Pages, API, logs at DEBUG, attempts, the audit log and a backup, after it was used and refused."""
    chat_set = workspace(chats=1)
    point_at(settings, "http://127.0.0.1:9/v1")
    refusal = f"bad key {CANARY}".encode()
    with caplog.at_level(logging.DEBUG), StubEndpoint(always(True)) as stub:
        stub.models = StubReply(status=401, raw=refusal)
        pages = [post(lead, NEW, address=stub.base_url, models="m")]
        lead.post(path("test/"))
        call_command("evaluate", set="calibration", engine="direct", endpoint="Office")
        stub.answer = lambda body: StubReply(status=401, raw=refusal)
        with pytest.raises(CommandExit):
            call_command("evaluate", set="calibration", engine="direct", endpoint="Office", replicate=1)
        assert any(CANARY in one.headers["Authorization"] for one in stub.seen)
        names = ("endpoint_list", "run_list", "profile_list")
        pages += [lead.get(reverse(f"evaluation:{name}")).content.decode() for name in names]
        pages += [lead.get(one).content.decode() for one in (path(), path("edit/"), "/audit/", "/api/runs/")]
    told = capsys.readouterr()
    database = "\n".join(connection_dump())
    assert ModelCall.objects.exists() and chat_set.pk
    backup = tmp_path / "backup.zip"
    call_command("backup", str(backup))
    with zipfile.ZipFile(backup) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for text in (*pages, caplog.text, told.out, told.err, database):
        assert CANARY not in text and CANARY[4:20] not in text
    assert not any(CANARY.encode() in content for content in members.values())
    key = Path(settings.LACE_ENDPOINT_KEY_FILE).read_bytes()
    assert not any(key in content for content in members.values())


def connection_dump() -> list[str]:
    out = io.StringIO()
    call_command("dumpdata", stdout=out)
    return [out.getvalue()]


def test_an_error_report_hides_the_key_even_on_the_debug_page(
    lead: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DEBUG = True

    def fail(*, choice: Any, by: Any) -> None:
        copied = str(choice.key) + "!"
        raise RuntimeError(f"after {len(copied)} characters")

    monkeypatch.setattr(views, "endpoint_connect", fail)
    lead.raise_request_exception = False
    page = post(lead, NEW)
    assert "RuntimeError" in page and "after 29 characters" in page
    assert CANARY not in page


def test_a_key_in_memory_hides_itself() -> None:
    assert CANARY not in repr(Secret(CANARY)) and CANARY not in f"{[Secret(CANARY)]}"
    assert key_hint(CANARY) == "WXYZ" and key_hint("elevenchars") == ""


def test_keys_of_the_environment_encrypt_and_an_older_one_still_reads(
    settings: Settings, key_file: Path
) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.LACE_ENDPOINT_KEYS = [old]
    stored = encrypt(CANARY)
    settings.LACE_ENDPOINT_KEYS = [new, old]
    assert decrypt(stored, name="Office") == CANARY
    settings.LACE_ENDPOINT_KEYS = [new]
    with pytest.raises(KeyUnreadable, match="enter the key again"):
        decrypt(stored, name="Office")
    assert not key_file.exists()


def test_without_the_key_file_the_page_says_what_to_do(lead: Client, key_file: Path) -> None:
    post(lead, NEW, models="m")
    key_file.unlink()
    page = lead.post(path("test/"), follow=True).content.decode()
    assert "cannot be decrypted" in page and "enter the key again" in page
    with pytest.raises(KeyUnreadable):
        endpoint_at("https://office.test/v1")


def test_authors_and_raters_find_no_such_pages() -> None:
    ConnectedEndpoint.objects.create(name="Office", address="https://office.test/v1")
    for role in (Role.AUTHOR, Role.RATER):
        client = Client()
        client.force_login(make_user(role.value, role))
        assert {client.get(one).status_code for one in ("/models/", NEW, path(), path("edit/"))} == {404}
