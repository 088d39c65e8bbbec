"""Names of people and places leave a chat where the server has a language model for them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
from django.test import Client
from pytest_django import Settings

from labeling.ingest.core.personal_data import Found
from labeling.ingest.core.redaction import Redactor
from labeling.ingest.names import name_finder
from labeling.models.chats import Chat
from labeling.models.ingest import IngestSettings
from labeling.models.people import Role
from tests.factories.rows import make_user

KEY = b"a secret of 24 bytes ..."
SAID = "I am Ann Baker (ann.baker@example.com), of Elm Street. ANN BAKER!"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a spaCy model that knows one person and one street."""
    nlp = spacy.blank("en")
    ann = [{"LOWER": "ann"}, {"LOWER": "baker"}]
    street = [{"LOWER": "elm"}, {"LOWER": "street"}]
    ruler: Any = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": ann}, {"label": "GPE", "pattern": street}])
    folder = tmp_path_factory.mktemp("model")
    nlp.to_disk(folder)
    return str(folder)


@pytest.fixture
def lead(client: Client, db: None) -> Client:
    client.force_login(make_user("ines", Role.LEAD))
    return client


def names_in(text: str) -> Callable[[str], list[Found]]:
    def found(said: str) -> list[Found]:
        at = said.find(text)
        return [Found(at, at + len(text), "name", text.casefold())] if at >= 0 else []

    return found


def redact(lead: Client, *kinds: str) -> Any:
    body = json.dumps({"redact": kinds})
    return lead.patch("/api/incoming/", body, content_type="application/json")


def test_a_name_keeps_its_number_and_never_splits_an_address() -> None:
    redactor = Redactor(KEY, kinds=("email", "name"), names=names_in("ann"))
    chat = redactor.chat(
        [{"role": "user", "content": "ann@example.com"}, {"content": "ann, ann@example.com"}]
    )
    assert [one["content"] for one in chat.messages] == ["[email 1]", "[name 1], [email 1]"]
    assert chat.counts == {"email": 2, "name": 1}
    assert redactor.identifier("ann-7") == "ann-7"


def test_a_chat_is_stored_without_the_names_that_the_model_finds(
    lead: Client, settings: Settings, model: str
) -> None:
    settings.LACE_NAMES_MODEL = model
    assert "Names of people" in lead.get("/workspace/chats/").content.decode()
    assert redact(lead, "email", "name", "place").status_code == 200
    chat = {"id": "c1", "messages": [{"role": "user", "content": SAID}]}
    answer = lead.post("/api/chats/", json.dumps({"chats": [chat]}), content_type="application/json")
    assert answer.json()["redactions"] == {"email": 1, "name": 2, "place": 1}
    assert Chat.objects.get().messages[0]["content"] == "I am [name 1] ([email 1]), of [place 1]. [name 1]!"


@pytest.mark.parametrize(("name", "why"), [("", "no model"), ("no_model", "no_model is not installed")])
def test_names_cannot_be_chosen_without_a_model(
    lead: Client, settings: Settings, name: str, why: str
) -> None:
    settings.LACE_NAMES_MODEL = name
    answer = redact(lead, "name")
    assert answer.status_code == 400 and why in answer.json()["redact"][0]
    assert not IngestSettings.objects.exclude(redact=[]).exists()


def test_no_chat_is_stored_while_its_names_cannot_be_found(
    lead: Client, settings: Settings, tmp_path: Path
) -> None:
    IngestSettings.objects.create(id=1, redact=["name"], redaction_key=KEY)
    settings.LACE_NAMES_MODEL = str(tmp_path / "gone")
    body = json.dumps({"chats": [{"id": "c1", "messages": [{"role": "user", "content": SAID}]}]})
    answer = lead.post("/api/chats/", body, content_type="application/json", HTTP_IDEMPOTENCY_KEY="k1")
    assert answer.status_code == 503 and "gone is not installed" in answer.json()["detail"]
    assert not Chat.objects.exists()
    settings.LACE_NAMES_MODEL = ""
    tried = lead.post("/workspace/chats/try/", {"chat": "Customer: hi"}, headers={"HX-Request": "true"})
    assert "no model for them" in tried.content.decode()


def test_the_model_is_loaded_once(settings: Settings, model: str) -> None:
    settings.LACE_NAMES_MODEL = model
    assert name_finder() is name_finder()
