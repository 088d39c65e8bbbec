"""The whole way on a workspace that never saw the demo: by commands alone, then by people in a browser."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.labels import Label
from labeling.models.people import Role
from labeling.models.rubric import Rubric
from tests.browsing import watch
from tests.factories.rows import make_user
from tests.factories.runs import environment
from tests.files import chat, criterion, label, rubric, write_json, write_jsonl
from tests.stub_endpoint import StubEndpoint, planted_judge

pytestmark = pytest.mark.django_db(transaction=True)

CASES = [f"case-{n}" for n in range(1, 9)]
TRUTH: dict[str, dict[str, bool | None]] = {
    case: {"on_time": n % 2 == 0, "rude": n % 4 == 0, "refund_right": None if n < 4 else n < 6}
    for n, case in enumerate(CASES)
}
PASSWORD = "correct horse battery"  # of the accounts that `make_user` makes
COUNTS = ("n", "unlabelled", "unresolved", "not_applicable", "no_verdict", "judge_not_applicable")


def manage(base_url: str, command: str, *args: Any) -> dict[str, Any]:
    """`manage.py <command> … --json` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", command, *map(str, args), "--json"],
        env=environment(base_url),
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def files(folder: Path) -> dict[str, Path]:
    """A little rubric, eight chats, and the labels of two raters."""
    document = rubric(
        criterion("on_time", question="Did the order come in time?"),
        criterion("rude", passes_when=False, question="Was the bot rude?", tier="subjective"),
        criterion("refund_right", allow_na=True, tier="context", question="Was the refund right?"),
        name="Deliveries",
    )
    chats = [chat(case, f"It is about case {case}: where is it?", "On its way.") for case in CASES]
    labels = [
        label(case, key, rater=rater, value=value, rationale="m2 shows it", turns=[2])
        for case, answers in TRUTH.items()
        for key, value in answers.items()
        for rater in ("anna", "ben")
    ]
    return {
        "rubric": write_json(folder / "rubric.json", document),
        "chats": write_jsonl(folder / "chats.jsonl", *chats),
        "labels": write_jsonl(folder / "labels.jsonl", *labels),
    }


def walk(folder: Path, engine: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Import, evaluate and report with nothing but commands; the run and its report."""
    assert not Rubric.objects.exists()
    paths = files(folder)
    with StubEndpoint(planted_judge(TRUTH, tpr=0.75, tnr=0.75, seed=3)) as stub:
        assert manage(stub.base_url, "import_rubric", paths["rubric"])["created"] == 3
        assert manage(stub.base_url, "import_chats", paths["chats"], "--set", "may")["created"] == 8
        assert manage(stub.base_url, "import_labels", paths["labels"])["created"] == 48
        done = manage(stub.base_url, "evaluate", "--set", "may", "--engine", engine)
        report = manage(stub.base_url, "alignment_report", "--run", done["run"])
    return done, report


@pytest.mark.parametrize("engine", [pytest.param("direct", marks=pytest.mark.heavy), "auto"])
def test_five_commands_make_a_full_report_of_any_rubric(engine: str, tmp_path: Path) -> None:
    done, report = walk(tmp_path, engine)
    assert (done["state"], done["verdicts"], done["unparsed"]) == ("done", 24, 0)
    assert (report["set"], report["chats"], report["judge"]["engine"]) == ("may", 8, engine)
    assert [row["key"] for row in report["criteria"]] == ["on_time", "rude", "refund_right"]
    for row in report["criteria"]:
        assert sum(row[name] for name in COUNTS) == 8
        assert sum(row["confusion"].values()) == row["n"]
        assert row["human"]["overlap"] == 8
        assert row["human"]["percent_agreement"] == 1
        assert row["tpr"]["low"] <= row["tpr"]["value"] <= row["tpr"]["high"]
        assert row["status"] == "not_enough_labels"
    assert report["criteria"][2]["not_applicable"] == 4
    wrong = sum(row["confusion"]["fn"] + row["confusion"]["fp"] for row in report["criteria"])
    assert report["disagreements_total"] == len(report["disagreements"]) == wrong > 0


# ---------- people ----------


def sign_in(page: Page, live_server: LiveServer, name: str) -> None:
    page.goto(live_server.url)
    page.get_by_label("User name or e-mail").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator(".account summary")).to_be_visible()


def sign_out(page: Page, live_server: LiveServer) -> None:
    page.goto(live_server.url)
    page.locator(".account summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def open_job(page: Page) -> None:
    """The lead hands the set to the raters."""
    page.get_by_role("link", name="Chat sets").click()
    page.get_by_role("link", name="may", exact=True).click()
    page.get_by_role("link", name="Open a labelling job").click()
    page.get_by_label("Name", exact=True).fill("May chats")
    page.get_by_label("Labels per chat").fill("1")
    page.get_by_label("cleo").check()
    page.get_by_role("button", name="Open the job").click()
    expect(page.get_by_text("May chats opened")).to_be_visible()


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the link or button of this name has the focus."""
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()").startswith(name):
            return
    raise AssertionError(f"{name!r} cannot be reached by keyboard")


def label_one_chat(page: Page) -> None:
    """The rater's first chat, by keyboard alone."""
    tab_to(page, "Start chat")
    page.keyboard.press("Enter")
    expect(page.locator("form.open:not([hidden]) legend")).to_have_text("Did the order come in time?")
    for key in "tfn":
        page.keyboard.press(key)
    expect(page.locator("#why")).to_have_text("All answered")
    first = page.url
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda url: url != first)


def read_report(page: Page, report: dict[str, Any]) -> None:
    """From Home to the report, and on to a chat on which people and judge differ."""
    page.get_by_role("link", name="Reports", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reports")
    page.get_by_role("link", name=f"Run {report['run']}").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Alignment report")
    table = report["criteria"][0]["confusion"]
    cells = page.locator("#c-on_time .matrix b")
    expect(cells).to_have_text([str(table[name]) for name in ("tp", "fn", "fp", "tn")])
    expect(page.get_by_role("table", name="Judge against consensus")).to_contain_text("Not enough labels")
    read_disagreement(page, report["disagreements"][0])


def read_disagreement(page: Page, row: dict[str, Any]) -> None:
    """Through the matrix to the chat: its labels, both briefs, and the Judge's whole rationale."""
    passes_when = row["criterion"] != "rude"
    words = "false alarm" if row["human"] is passes_when else "missed failure"
    page.get_by_role("link", name="Matrices", exact=True).click()
    page.locator(f"#c-{row['criterion']}").get_by_role("link", name=words).click()
    page.locator("article.disc").first.get_by_role("link").click()
    expect(page.locator(".crumbs")).to_contain_text(row["chat_id"])
    expect(page.locator(".label-cards article").first).to_contain_text("m2 shows it")
    steps = page.locator(".steps article")
    expect(steps).to_have_count(3)
    titles = ["Customer critic", "Support defender", "Judge"]
    for place, title in enumerate(titles):
        expect(steps.nth(place)).to_contain_text(title)
    word = "TRUE" if row["judge"] else "FALSE"
    expect(steps.last).to_contain_text(f"On {row['criterion']} the messages lead me to say {word}.")


@pytest.mark.flow
@pytest.mark.browser
def test_a_rater_labels_by_keyboard_alone_and_a_lead_reads_the_report(
    page: Page, live_server: LiveServer, tmp_path: Path
) -> None:
    problems: list[str] = []
    watch(page, problems)
    _, report = walk(tmp_path, "debate")
    make_user("cleo", Role.RATER)
    make_user("ines", Role.LEAD)
    sign_in(page, live_server, "ines")
    open_job(page)
    sign_out(page, live_server)
    sign_in(page, live_server, "cleo")
    label_one_chat(page)
    sign_out(page, live_server)
    given = Label.objects.filter(rater__name="cleo", state="submitted")
    answers = dict(given.values_list("criterion__key", "value"))
    assert answers == {"on_time": True, "rude": False, "refund_right": None}
    sign_in(page, live_server, "ines")
    read_report(page, report)
    assert problems == []
