"""The knowledge panel in a real browser: by one key, searchable, in the guideline, without the network."""

import pytest
from playwright.sync_api import Page, expect

from labeling.models.chats import Chat
from tests.browsing import assert_fine
from tests.factories.articles import make_article
from tests.factories.labelling_job import Desk
from tests.factories.rating_screen import answers, forgive, question, ready, saved

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def informed(screen: Page, desk: Desk) -> Page:
    """The first criterion needs two articles; the first chat is about one of them."""
    turns = [{"n": 1, "role": "user", "content": "May I tip my shopper?"}]
    Chat.objects.update(messages=turns, message_count=1)
    first = desk.criteria[0]
    make_article("alcohol", "# Alcohol\n\nWine needs an adult.", criterion=first)
    make_article("tips", "# Tips\n\nA **tip** goes to the shopper.", criterion=first)
    screen.reload()
    ready(screen)
    return screen


def test_one_key_shows_the_articles_of_the_open_criterion_beside_the_chat(informed: Page) -> None:
    panel = informed.get_by_role("complementary", name="Knowledge")
    informed.keyboard.press("a")
    expect(panel.locator("strong")).to_have_text("tip")
    expect(panel.get_by_text("Wine needs an adult.")).to_have_count(0)
    panel.locator("summary", has_text="Alcohol").press("Enter")
    expect(panel.get_by_text("Wine needs an adult.")).to_be_visible()
    informed.keyboard.press("t")
    expect(question(informed)).to_have_text("Is brief so?")
    expect(panel).to_contain_text("No article belongs to this criterion")
    informed.keyboard.press("a")
    expect(panel).to_be_hidden()
    saved(informed)
    assert answers() == {"polite": True}


def test_a_search_finds_articles_and_escape_leads_back(informed: Page) -> None:
    informed.keyboard.press("a")
    panel = informed.get_by_role("complementary", name="Knowledge")
    field = panel.get_by_role("searchbox")
    expect(field).to_have_attribute("placeholder", "Search 2 articles")
    field.fill("adult")
    expect(panel.locator("summary")).to_have_text(["Alcohol"])
    field.press("Enter")
    expect(panel.get_by_text("Wine needs an adult.")).to_be_visible()
    field.fill("refund")
    expect(panel).to_contain_text("No article has these words.")
    field.press("Escape")
    expect(panel).to_contain_text("For this chat")
    informed.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert informed.evaluate("document.activeElement.matches('form.open')")


def test_the_guideline_lists_the_articles(informed: Page) -> None:
    informed.keyboard.press("g")
    titles = informed.locator("#guideline .titles:visible button")
    expect(titles).to_have_text(["Tips", "Alcohol"])
    titles.last.press("Enter")
    expect(informed.locator("#knowledge").get_by_text("Wine needs an adult.")).to_be_visible()


def test_without_the_network_the_panel_says_so_and_tries_again(informed: Page, problems: list[str]) -> None:
    informed.route("**/knowledge/**", lambda route: route.abort())
    informed.keyboard.press("a")
    panel = informed.get_by_role("complementary", name="Knowledge")
    expect(panel).to_contain_text("The articles can’t be loaded now.")
    informed.unroute("**/knowledge/**")
    panel.get_by_role("button", name="Try again").press("Enter")
    expect(panel.locator("strong")).to_have_text("tip")
    forgive(problems, "ERR_FAILED")


@pytest.mark.usefixtures("each_scheme")
def test_nothing_serious_for_axe_with_knowledge_and_evidence_open(informed: Page) -> None:
    informed.keyboard.press("a")
    informed.keyboard.press("e")
    expect(informed.locator("#knowledge strong")).to_be_visible()
    assert_fine(informed, sizes=[(1440, 900), (1024, 700), (390, 844)])
