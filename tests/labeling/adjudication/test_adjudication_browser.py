"""Adjudication in a real browser: the whole way by keyboard, marks in the chat, accessibility."""

import re
from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import BrowserContext, Dialog, Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.adjudication.services import adjudication_decide
from labeling.models.labels import Adjudication, Consensus
from labeling.models.people import AuditEvent, Role
from labeling.models.rubric import CriterionVersion
from tests.browsing import assert_fine, press, watch
from tests.factories.many_labels import Item, label, labelled_item
from tests.factories.rating_screen import mouse_uses, sign_in, watch_mouse
from tests.factories.rows import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

REFUSED = re.compile(r"status of (400|409)")
MESSAGES = [
    ("user", "Where is my order? It was due **yesterday**."),
    ("assistant", "Sorry for the wait. Your *order* is on its way. Your *order* comes today."),
    ("tool", '{"status": "late"}'),
]


@pytest.fixture
def items(transactional_db: None) -> list[Item]:
    """Three disputed items; the raters point to a quote of the bot's turn and to the tool's turn."""
    found = []
    for key in ("polite", "correct", "brief"):
        item = labelled_item(key=key, messages=MESSAGES, allow_na=key == "correct")
        start = MESSAGES[1][1].rindex("Your *order*")
        quote = {"n": 2, "start": start, "end": start + 12, "quote": "Your *order*"}
        label(item.chat, item.criterion, True, True, False, evidence=[quote, {"n": 3}])
        found.append(item)
    return found


@pytest.fixture
def screen(page: Page, context: BrowserContext, live_server: LiveServer, items: list[Item]) -> Iterator[Page]:
    """The queue as a lead opens it; afterwards the console must be clean."""
    problems: list[str] = []
    sign_in(context, live_server, make_user("ines", Role.LEAD))
    watch(page, problems)
    page.goto(live_server.url + reverse("labeling:adjudication_queue") + "?kind=split")
    yield page
    # A refused form is a 400 or a 409, which the browser reports as a failed load.
    assert [problem for problem in problems if not REFUSED.search(problem)] == []


def on(page: Page, key: str) -> None:
    """The item of this criterion is there, and its keys work."""
    expect(page.locator(".asked h2")).to_have_text(f"Is {key} so?")
    page.wait_for_load_state()


def start(page: Page) -> None:
    page.get_by_role("link", name="Start adjudicating").press("Enter")
    on(page, "polite")
    expect(page.locator(".likely")).to_contain_text("Dawid–Skene")


def test_the_queue_is_worked_off_with_keys_alone(screen: Page) -> None:
    start(screen)
    watch_mouse(screen)
    screen.keyboard.press("f")
    expect(screen.locator("#reason")).to_be_focused()
    screen.keyboard.type("The bot is rude, jk tfn.")
    assert mouse_uses(screen) == 0
    screen.keyboard.press("Control+Enter")
    on(screen, "correct")
    expect(screen.locator(".toast")).to_contain_text("Decided False: Polite")
    screen.keyboard.press("n")
    screen.keyboard.type("Nothing to be correct about.")
    screen.keyboard.press("Control+Enter")
    on(screen, "brief")
    screen.keyboard.press("1")
    screen.keyboard.type("Short.")
    screen.keyboard.press("Control+Enter")
    expect(screen.get_by_role("heading", level=1)).to_have_text("Adjudicate")
    decided = dict(Adjudication.objects.values_list("criterion__key", "value"))
    assert decided == {"polite": False, "correct": None, "brief": True}
    assert set(Consensus.objects.values_list("by", flat=True)) == {"adjudication"}


def test_j_and_k_walk_u_goes_back_to_the_decision_and_q_to_the_queue(screen: Page) -> None:
    start(screen)
    for key, there in (("j", "correct"), ("ArrowRight", "brief"), ("j", "polite"), ("k", "brief")):
        screen.keyboard.press(key)
        on(screen, there)
    screen.keyboard.press("t")
    screen.keyboard.type("Short.")
    screen.keyboard.press("Control+Enter")
    on(screen, "polite")
    screen.keyboard.press("u")
    on(screen, "brief")
    expect(screen.locator(".decided-now")).to_contain_text("Short.")
    screen.get_by_role("button", name="Withdraw decision").press("Enter")
    expect(screen.locator(".toast")).to_contain_text("withdrawn")
    press(screen, "q")
    expect(screen.get_by_role("heading", level=1)).to_have_text("3 rater disagreements")


def test_not_applicable_has_no_key_where_the_criterion_always_applies(screen: Page) -> None:
    start(screen)
    screen.keyboard.press("n")
    expect(screen.locator("input[name=value]:checked")).to_have_count(0)


def test_keys_with_modifiers_and_in_the_reason_do_nothing_else(screen: Page) -> None:
    start(screen)
    for key in ("Alt+t", "Control+f", "Shift+J"):
        screen.keyboard.press(key)
    expect(screen.locator("input[name=value]:checked")).to_have_count(0)
    screen.keyboard.press("r")
    screen.keyboard.type("jkqu?")
    expect(screen.locator("#reason")).to_have_value("jkqu?")
    screen.keyboard.press("Escape")
    expect(screen.locator("#reason")).not_to_be_focused()
    screen.keyboard.press("?")
    expect(screen.locator("#keys")).to_be_visible()


def test_submitting_too_early_says_what_is_missing_and_keeps_the_answer(screen: Page) -> None:
    start(screen)
    screen.keyboard.press("t")
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("#reason-error")).to_contain_text("Give a reason")
    expect(screen.locator("input[value=true]")).to_be_checked()
    assert not Adjudication.objects.exists()


def test_the_quoted_words_are_marked_at_their_own_place_and_e_leads_through_the_evidence(
    screen: Page,
) -> None:
    start(screen)
    marked = """() => [...CSS.highlights.get("evidence")].map(range => {
        const before = new Range();
        before.setStart(range.startContainer.parentElement.closest(".md"), 0);
        before.setEnd(range.startContainer, range.startOffset);
        return [range.toString(), before.toString().trim()];
    })"""
    found = screen.evaluate(marked)
    assert {words for words, _ in found} == {"Your order"}
    assert all(before.endswith("is on its way.") for _, before in found)
    expect(screen.locator("#m2")).to_have_class("turn bot picked")
    screen.keyboard.press("e")
    expect(screen.locator("#m2.here")).to_be_in_viewport()
    screen.keyboard.press("e")
    expect(screen.locator("#m3.here details")).to_have_attribute("open", "")


def test_words_in_links_and_beside_hidden_characters_are_marked_where_they_were_chosen(screen: Page) -> None:
    content = "See [the order](https://example.org/the-order) and `the order`: the\u200b order."
    item = labelled_item(key="late", messages=[("assistant", content)])
    place = content.index("the\u200b")
    words = content[place : place + 10]
    quote = {"n": 1, "start": place, "end": place + 10, "quote": words}
    label(item.chat, item.criterion, True, False, evidence=[quote])
    screen.goto(screen.url.split("/adjud")[0] + reverse("labeling:adjudicate", args=[item.chat.pk, "late"]))
    marked = """() => [...CSS.highlights.get("evidence")].map(range =>
        [range.startContainer.parentElement.tagName, range.toString()])"""
    assert screen.evaluate(marked) == [["P", "theZWSP order"]] * 2


def test_l_leads_through_labels_that_a_long_definition_pushes_out_of_sight(screen: Page) -> None:
    CriterionVersion.objects.filter(criterion__key="polite").update(definition="Polite means a lot. " * 60)
    screen.set_viewport_size({"width": 1280, "height": 720})
    start(screen)
    labels = screen.locator(".label-cards article")
    for place in (0, 1, 2, 0):
        screen.keyboard.press("l")
        expect(labels.nth(place)).to_be_focused()
        expect(labels.nth(place)).to_be_in_viewport()
    screen.keyboard.press("g")
    expect(screen.locator(".guide .def")).to_be_visible()


def test_names_are_shown_by_a_button_that_keeps_what_was_typed(screen: Page) -> None:
    start(screen)
    screen.keyboard.press("f")
    screen.keyboard.type("Half a reason")
    expect(screen.locator(".label-cards")).not_to_contain_text("Amira")
    screen.get_by_role("button", name="Show names").press("Enter")
    expect(screen.locator(".label-cards")).to_contain_text("Amira")
    expect(screen.locator("#names")).to_contain_text("Names shown")
    expect(screen.locator("#names span")).to_be_focused()
    expect(screen.locator("#reason")).to_have_value("Half a reason")
    screen.keyboard.press("e")
    expect(screen.locator("#m2.here")).to_be_in_viewport()
    screen.keyboard.press("Control+Enter")
    on(screen, "correct")


def test_a_reason_that_is_stored_nowhere_is_asked_about_after_names_too(screen: Page) -> None:
    start(screen)
    asked: list[str] = []

    def stay_not(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    screen.on("dialog", stay_not)
    screen.keyboard.press("f")
    screen.keyboard.type("Half a reason")
    screen.get_by_role("button", name="Show names").press("Enter")
    expect(screen.locator(".label-cards")).to_contain_text("Amira")
    screen.reload()
    assert asked == ["beforeunload"]
    expect(screen.locator(".label-cards")).not_to_contain_text("Amira")
    assert AuditEvent.objects.filter(verb="raters named").count() == 1


def test_keys_work_on_a_keyboard_of_another_script_and_filling_in_fires_none(screen: Page) -> None:
    start(screen)
    screen.evaluate("document.body.dispatchEvent(new Event('keydown', {bubbles: true}))")
    screen.evaluate(
        """document.body.dispatchEvent(
            new KeyboardEvent('keydown', {key: '\u0430', code: 'KeyF', bubbles: true, cancelable: true}))"""
    )
    expect(screen.locator("input[value=false]")).to_be_checked()


def test_a_second_lead_confirms_before_a_decision_is_replaced(screen: Page, items: list[Item]) -> None:
    start(screen)
    other = make_user("otto", Role.LEAD)
    adjudication_decide(
        chat=items[0].chat,
        criterion=items[0].criterion,
        value=True,
        reason="Polite enough.",
        by=other,
        seen=None,
    )
    screen.keyboard.press("f")
    screen.keyboard.type("Not at all.")
    screen.keyboard.press("Control+Enter")
    expect(screen.locator("#meanwhile")).to_contain_text("otto has decided")
    expect(screen.locator(".decided-now")).to_contain_text("Polite enough.")
    press(screen, "Control+Enter")
    on(screen, "correct")
    assert Adjudication.objects.get(replaced_at=None).reason == "Not at all."


@pytest.mark.usefixtures("each_scheme")
def test_queue_and_item_are_accessible_and_no_wider_than_the_screen(screen: Page) -> None:
    assert_fine(screen, "queue")
    start(screen)
    assert_fine(screen, "item")


def test_the_decision_is_in_sight_without_scrolling_on_a_wide_screen(screen: Page) -> None:
    screen.set_viewport_size({"width": 1280, "height": 720})
    start(screen)
    expect(screen.locator("#reason")).to_be_in_viewport(ratio=1)
    expect(screen.get_by_role("button", name="Submit and next")).to_be_in_viewport(ratio=1)
