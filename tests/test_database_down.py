"""Pages, API and label saves while the database is locked or gone: 503 by name, and nothing is lost."""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client

from labeling.models.labels import Label
from tests.factories.api_calls import label_url, put
from tests.factories.labelling_job import Desk, make_desk, user_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="locks and moves a SQLite file"),
]
PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def rater(desk: Desk) -> Client:
    client = Client(raise_request_exception=False, headers={"accept": PAGE})
    client.force_login(user_of(desk.rater))
    return client


@contextmanager
def locked() -> Iterator[None]:
    """Another process holds the write lock for longer than anybody waits."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 50")
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def gone() -> Iterator[None]:
    path = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = f"{path}.absent"
    try:
        yield
        assert not Path(f"{path}.absent").exists()
    finally:
        connection.close()
        connection.settings_dict["NAME"] = path


def test_a_label_that_cannot_be_saved_is_a_503_and_is_saved_by_the_next_try(
    rater: Client, desk: Desk
) -> None:
    url, answer = label_url(desk.taken()), {"client_id": str(uuid.uuid4())}
    with locked():
        refused = put(rater, url, **answer)
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "5"
    assert refused.json()["code"] == "database_busy"
    assert not Label.objects.exists()
    assert put(rater, url, **answer).status_code == 200
    assert Label.objects.get().value is True


def test_a_page_that_cannot_write_says_so_and_a_page_that_reads_is_shown(rater: Client) -> None:
    with locked():
        refused = rater.post("/accounts/logout/")
        assert rater.get("/queue/").status_code == 200
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "5"
    assert "The database is busy" in refused.content.decode()


def test_a_missing_database_is_named_on_pages_and_in_the_api(rater: Client) -> None:
    with gone():
        page, answer = rater.get("/queue/"), rater.get("/api/queue/")
    assert (page.status_code, answer.status_code) == (503, 503)
    text = page.content.decode()
    assert "The database is missing" in text
    assert "safe" not in text
    assert "kept" not in text
    assert answer.json()["code"] == "database_missing"


def test_a_fault_of_ours_is_json_for_the_api_too(rater: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("labeling.rating.api.rater.QueueApi.get", fault)
    answer = rater.get("/api/queue/")
    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
