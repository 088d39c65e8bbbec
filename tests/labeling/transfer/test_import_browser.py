"""The whole way of an import in a browser: a CSV with odd columns becomes a chat set."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.chats import Chat, ChatSetMember
from labeling.models.imports import DataImport
from labeling.models.people import Role
from labeling.transfer.services.work import check_work, store_work
from tests.browsing import watch
from tests.factories.imports import csv_file
from tests.factories.rating_screen import sign_in
from tests.factories.rows import make_rubric, make_user

pytestmark = pytest.mark.browser

HEADER = ("Ticket Nr.", "Wer", "Was gesagt wurde", "Rubrik")


@pytest.fixture
def odd_file(tmp_path: Path) -> Path:
    rows: list[tuple[str, ...]] = [HEADER]
    for n in range(12):
        rows.append((f"T-{n}", "Kunde", f"Wo ist meine Bestellung {n}?", "Versand"))
        rows.append((f"T-{n}", "Beraterin", "Sie kommt morgen.", "Versand"))
    path = tmp_path / "odd.csv"
    path.write_bytes(csv_file(*rows, delimiter=";", encoding="cp1252"))
    return path


def choose_columns(page: Page) -> None:
    """Correct the guess, and look at the preview."""
    expect(page.get_by_label("Wer", exact=True)).to_have_value("speaker")
    expect(page.get_by_label("Was gesagt wurde")).to_have_value("text")
    expect(page.get_by_label("Ticket Nr.")).to_have_value("id")
    page.get_by_label("Rubrik", exact=True).select_option("topic")
    page.get_by_label("Beraterin").select_option("assistant")
    page.get_by_role("button", name="Update preview").click()
    expect(page.get_by_text("The first 10 chats, as raters will see them.")).to_be_visible()
    expect(page.locator(".seen h3").first).to_contain_text("T-0")
    expect(page.locator(".seen .turn.bot").first).to_contain_text("Sie kommt morgen.")


def test_a_file_with_odd_columns_becomes_a_chat_set(
    page: Page,
    context: BrowserContext,
    live_server: LiveServer,
    transactional_db: None,
    odd_file: Path,
    settings: Any,
    tmp_path: Path,
) -> None:
    settings.IMPORT_DIR = tmp_path / "imports"
    make_rubric("polite", name="Support")
    problems: list[str] = []
    watch(page, problems)
    sign_in(context, live_server, make_user("ines", Role.LEAD))

    page.goto(f"{live_server.url}/sets/")
    page.get_by_role("link", name="Import chats").click()
    page.set_input_files("#file", odd_file)
    page.get_by_role("button", name="Read the file").click()

    choose_columns(page)
    page.get_by_label("Name of a new set").fill("November")
    page.get_by_role("button", name="Check the file").click()
    expect(page.get_by_role("heading", name="Checking")).to_be_visible()
    row = DataImport.objects.get()
    check_work(row.pk)  # the worker
    page.get_by_role("button", name="Import 12 chats").click()
    expect(page.get_by_role("heading", name="Importing")).to_be_visible()
    assert Chat.objects.count() == 0
    store_work(row.pk)
    expect(page.get_by_text("12 chats imported into November.")).to_be_visible()
    assert ChatSetMember.objects.filter(chat_set__name="November").count() == 12

    page.get_by_role("button", name="Undo import").click()
    expect(page.get_by_text(re.compile("^Undone"))).to_be_visible()
    assert Chat.objects.count() == 0
    assert problems == []
