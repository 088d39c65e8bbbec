"""Criteria and prompt versions in a real browser: by keyboard, with axe, in narrow and dark windows."""

import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from evaluation.models.prompts import PromptVersion
from labeling.models.labels import RaterNote
from labeling.models.people import Rater, Role, User
from tests.browsing import assert_fine, watch
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.prompt_versions import a_test, a_version, example_chat, promote, run_of
from tests.factories.rater_quality import polite
from tests.factories.rating_screen import sign_in
from tests.factories.rows import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGE = "/criteria/polite/"
TEXTS = (
    "# Context\nChats of a shop.\n\n# Objective\nWas it polite?",
    "# Context\nChats of a shop.\n\n# Objective\nWas it always polite?\n\n# Tone\nCalm.",
    "# Objective\nSomething else: " + "averylongwordwithoutaplacetobreak" * 6,
)


def build_compared() -> Compared:
    """Three versions of `polite` in every state, measured by judges of two models, with a note."""
    compared = make_compared()
    lead = make_user("ines", Role.LEAD)
    first = a_version(polite(), TEXTS[0], example_chat(compared, "an-old-one"))
    second = a_version(polite(), TEXTS[1], example_chat(compared, "a-new-one"), base=first, author=lead)
    third = a_version(polite(), TEXTS[2], base=second, origin="suggested")
    runs = [
        run_of(version, compared.chat_set, wrong=3 + 2 * n, config={"model": f"m{n // 2}"})
        for n, version in enumerate((first, second, third))
    ]
    promote(first, reason="First version")
    promote(second, by=lead, reason="Labels come next week", overridden=True)
    a_test(second, runs[1], result="inconclusive", reasons=["too few labels"])
    a_test(third, runs[2])
    RaterNote.objects.create(
        rater=Rater.objects.get(name="anna"),
        chat=compared.chat(1),
        criterion=polite(),
        version=polite().versions.get(),
        kind="unclear",
        text="Is thanks enough?",
        client_id=uuid.uuid4(),
    )
    return compared


@pytest.fixture
def author(
    page: Page, context: BrowserContext, live_server: LiveServer, compared: Compared
) -> Iterator[Page]:
    """Otto's browser, whose console must be clean afterwards: no CSP violation, no script error."""
    problems: list[str] = []
    watch(page, problems)
    sign_in(context, live_server, make_user("otto", Role.AUTHOR))
    yield page
    assert problems == []


def test_an_author_goes_from_the_criterion_to_a_change_and_restores_by_keyboard(
    author: Page, live_server: LiveServer
) -> None:
    author.goto(live_server.url + PAGE)
    expect(author.locator("#next")).to_contain_text("Version 3 is being tested")
    author.get_by_role("link", name="Changes since version 1 in version 2").press("Enter")
    expect(author.locator("#changed ins")).to_have_count(3)  # a word, a section, an example
    author.get_by_label("Compare with version").press("ArrowUp")
    author.get_by_role("button", name="Compare").press("Enter")
    expect(author.get_by_role("heading", name="From version 3 to version 2")).to_be_visible()
    author.goto(f"{live_server.url}{PAGE}versions/1/")
    author.get_by_label("Reason").press_sequentially("The newer one was worse")
    author.keyboard.press("Tab")
    expect(author.get_by_role("button", name="Restore version 1")).to_be_focused()
    author.keyboard.press("Enter")
    expect(author.get_by_role("heading", level=1)).to_contain_text("Version 4 of Polite Draft")
    restored = PromptVersion.objects.get(criterion=polite(), number=4)
    assert (restored.text, restored.author) == (TEXTS[0], User.objects.get(username="otto"))


def test_a_cell_and_a_disagreement_lead_to_their_chats(author: Page, live_server: LiveServer) -> None:
    author.goto(live_server.url + PAGE)
    dev = author.locator("article.split-disagreements").first
    missed = dev.get_by_role("link", name="false alarm").first
    count = int(missed.locator("b").inner_text())
    missed.click()
    expect(author.locator("article.disc")).to_have_count(count)
    author.go_back()
    dev.locator("article.disc a").first.click()
    expect(author.locator("#verdict")).to_be_visible()


def test_the_line_over_versions_is_chosen_and_its_table_is_below(
    author: Page, live_server: LiveServer
) -> None:
    author.goto(live_server.url + PAGE)
    drawing = author.get_by_role("img", name="Balanced accuracy on calibration, dev")
    expect(drawing.locator("use")).to_have_count(3)
    expect(drawing.locator(".link")).to_have_count(1)  # versions 1 and 2; the third had another model
    author.get_by_label("Measured on").select_option("calibration, holdout")
    author.get_by_role("button", name="Show").press("Enter")
    expect(author.get_by_role("img", name="Balanced accuracy on calibration, holdout")).to_be_visible()
    expect(author.get_by_role("group", name="Versions").locator("tbody tr")).to_have_count(3)


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(author: Page, live_server: LiveServer) -> None:
    for url in (
        "/criteria/",
        PAGE,
        f"{PAGE}versions/2/?against=3",
        f"{PAGE}versions/1/",
        "/criteria/welcome/",
    ):
        author.goto(live_server.url + url)
        author.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert_fine(author, url)
