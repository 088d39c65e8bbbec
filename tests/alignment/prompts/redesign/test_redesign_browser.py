"""Redesigning a criterion in a real browser, by keyboard; axe, CSP, narrow and dark screens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.rubric import Criterion
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.compared_runs import Compared, make_compared

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGE = "/criteria/polite/redesign/"


def build_compared() -> Compared:
    return make_compared(chats=12)


@pytest.fixture
def quiet(page: Page, live_server: LiveServer, compared: Compared) -> Iterator[Page]:
    with lead_signed_in(page, live_server.url) as signed_in:
        yield signed_in


def fill(page: Page, n: int, key: str) -> None:
    part = page.get_by_role("group", name=f"New question {n}", exact=True)
    part.get_by_label("Question", exact=True).fill(f"Is {key} so?")
    part.get_by_label("Definition").fill(f"True when {key}.")
    part.get_by_label("Key", exact=True).fill(key)


def test_by_keyboard_alone_a_criterion_is_split_and_its_labels_carry_over(
    quiet: Page, live_server: LiveServer
) -> None:
    quiet.goto(live_server.url + PAGE)
    quiet.get_by_role("link", name="Split").press("Enter")
    for n, key in enumerate(("greets", "thanks"), 1):
        fill(quiet, n, key)
    quiet.get_by_role("group", name="New question 1", exact=True).get_by_label("Polite").press("Space")
    quiet.get_by_label("Key", exact=True).first.press("Enter")
    expect(quiet.get_by_role("heading", name="What happens to Polite")).to_be_visible()
    expect(quiet.locator(".made").first).to_contain_text("36 labels and 0 adjudications carry over.")
    quiet.get_by_role("button", name="Split into 2 questions").press("Enter")
    expect(quiet.get_by_text("Confirm this, or carry no labels over.")).to_be_visible()
    quiet.get_by_label("I compared the questions").press("Space")
    quiet.get_by_label("Reason").fill("Two in one")
    quiet.get_by_role("button", name="Split into 2 questions").press("Enter")
    expect(quiet.get_by_role("status")).to_contain_text("36 labels carried over")
    assert Criterion.objects.get(key="polite").state == "retired"


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(quiet: Page, live_server: LiveServer) -> None:
    for query in ("", "?kind=merge", "?kind=split", "?kind=retire"):
        quiet.goto(live_server.url + PAGE + query)
        assert_fine(quiet, query)
    quiet.goto(live_server.url + PAGE + "?kind=replace")
    quiet.get_by_label("Key", exact=True).fill("No key")
    quiet.get_by_role("button", name="Preview").click()
    assert_fine(quiet, "refused")
    quiet.get_by_label("Key", exact=True).fill("kind_and_so_on_" * 4)
    quiet.get_by_label("Passes when").select_option("False")
    quiet.get_by_label("Polite").check()
    quiet.get_by_role("button", name="Preview").click()
    expect(quiet.get_by_text("Labels keep their True and False")).to_be_visible()
    assert_fine(quiet, "preview")
    quiet.get_by_role("button", name="Replace").click()
    assert_fine(quiet, "not confirmed")
    Criterion.objects.filter(key="polite").update(state="retired")
    quiet.goto(live_server.url + PAGE)
    assert_fine(quiet, "bring back")
