"""Words of a turn as evidence in a real browser: by dragging, by keys, counted in code points."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from labeling.models.chats import Chat
from labeling.models.labels import Label
from tests.factories.labelling_job import Desk
from tests.factories.rating_screen import ready, saved

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = (
    "🛒 Pay **now** at once\u202e: [our shop](https://example.org/pay) &amp; <b>wait</b>\n\n- one\n- two 👍🏽"
)
SELECT = """([n, text]) => {
    const turn = document.querySelector(`#m${n} .md, #m${n} pre`);
    const walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
    const [first, last] = [text.split("…")[0], text.split("…").at(-1)];
    let started = false;
    const range = document.createRange();
    while (walker.nextNode()) {
        const { data } = walker.currentNode;
        const from = data.indexOf(first);
        if (!started && from >= 0) { range.setStart(walker.currentNode, from); started = true; }
        const to = data.lastIndexOf(last);
        if (started && to >= 0) range.setEnd(walker.currentNode, to + last.length);
    }
    getSelection().removeAllRanges();
    getSelection().addRange(range);
}"""


@pytest.fixture
def hostile(screen: Page, desk: Desk) -> Page:
    messages = [
        {"n": 1, "role": "user", "content": "Where is order 7? Where is order 8?"},
        {"n": 2, "role": "assistant", "content": HOSTILE},
        {"n": 3, "role": "tool", "content": '{"status": "late",  "by": "2 days"}'},
    ]
    Chat.objects.filter(pk=desk.chats[0].pk).update(messages=messages, message_count=3)
    screen.reload()
    ready(screen)
    return screen


def select(page: Page, n: int, text: str) -> None:
    page.evaluate(SELECT, [n, text])


def evidence() -> Any:
    return Label.objects.get().evidence


def test_selected_words_become_evidence_with_their_place_and_their_text(hostile: Page) -> None:
    select(hostile, 2, "Pay …now")
    hostile.keyboard.press("e")
    expect(hostile.locator(".ev:visible q")).to_have_text("Pay now")
    hostile.keyboard.press("f")
    saved(hostile)
    found = evidence()[0]
    assert found == {"n": 2, "start": 2, "end": 11, "quote": "Pay **now"}
    assert HOSTILE[found["start"] : found["end"]] == found["quote"]


@pytest.mark.parametrize("text", ["at once", "our shop", "wait", "one…two 👍🏽", "🛒", "two 👍🏽"])
def test_a_place_is_counted_in_code_points_with_any_text_around_it(hostile: Page, text: str) -> None:
    select(hostile, 2, text)
    hostile.keyboard.press("e")
    hostile.keyboard.press("f")
    saved(hostile)
    part = evidence()[0]
    assert HOSTILE[part["start"] : part["end"]] == part["quote"]
    assert part["quote"].startswith(text.split("…")[0])
    assert part["quote"].endswith(text.split("…")[-1])


def test_a_drag_with_the_mouse_offers_the_words_as_evidence(hostile: Page) -> None:
    place = hostile.locator("#m1 .md p")
    box = place.bounding_box()
    assert box
    hostile.mouse.move(box["x"] + 1, box["y"] + 8)
    hostile.mouse.down()
    hostile.mouse.move(box["x"] + 90, box["y"] + 8, steps=5)
    hostile.mouse.up()
    hostile.get_by_role("button", name="Use as evidence").click()
    expect(hostile.locator(".ev:visible q")).to_contain_text("Where")
    expect(hostile.locator("#selected")).to_be_hidden()
    hostile.keyboard.press("f")
    saved(hostile)
    assert evidence()[0]["n"] == 1
    assert evidence()[0]["quote"].startswith("Where is")


def test_the_second_of_two_equal_words_is_the_second(hostile: Page) -> None:
    hostile.evaluate(
        """() => {
            const text = document.querySelector("#m1 .md p").firstChild;
            getSelection().setBaseAndExtent(text, 18, text, 23);
        }"""
    )
    hostile.keyboard.press("e")
    hostile.keyboard.press("f")
    saved(hostile)
    assert evidence() == [{"n": 1, "start": 18, "end": 23, "quote": "Where"}]


def test_words_are_chosen_with_keys_alone(hostile: Page) -> None:
    for key in ("e", "Enter", "ArrowRight", "ArrowRight", "Shift+ArrowRight", "Enter"):
        hostile.keyboard.press(key)
    expect(hostile.locator(".ev:visible q")).to_have_text("order 7?")
    hostile.keyboard.press("ArrowDown")
    hostile.keyboard.press("Space")
    hostile.keyboard.press("e")
    hostile.keyboard.press("f")
    saved(hostile)
    assert evidence() == [{"n": 1, "start": 9, "end": 17, "quote": "order 7?"}, {"n": 2}]


def test_words_of_a_folded_tool_turn_can_be_chosen_too(hostile: Page) -> None:
    for key in ("e", "ArrowDown", "ArrowDown", "Enter", "Shift+ArrowRight", "Enter", "Escape", "f"):
        hostile.keyboard.press(key)
    saved(hostile)
    assert evidence() == [{"n": 3, "start": 0, "end": 18, "quote": '{"status": "late",'}]


def test_a_quote_is_tinted_in_the_chat_survives_a_reload_and_can_be_removed(hostile: Page) -> None:
    select(hostile, 2, "at once")
    hostile.keyboard.press("e")
    hostile.keyboard.press("f")
    saved(hostile)
    hostile.reload()
    hostile.keyboard.press("k")
    tinted = "() => [...CSS.highlights.get('evidence')].map(String)"
    expect(hostile.locator(".ev:visible q")).to_have_text("at once")
    assert hostile.evaluate(tinted) == ["at once"]
    hostile.get_by_role("button", name="Remove turn 2: at once").press("Enter")
    expect(hostile.locator(".ev:visible")).to_have_count(0)
    assert hostile.evaluate(tinted) == []
    saved(hostile)
    assert evidence() == []
    hostile.keyboard.press("u")
    expect(hostile.locator(".ev:visible q")).to_have_text("at once")
    saved(hostile)


def test_a_hidden_character_stays_visible_in_the_quote(hostile: Page) -> None:
    select(hostile, 2, "at once…: ")
    hostile.keyboard.press("e")
    expect(hostile.locator(".ev:visible q .hid")).to_have_text("RLO")
    hostile.keyboard.press("f")
    saved(hostile)
    assert "\u202e" in evidence()[0]["quote"]


def test_a_selection_over_two_turns_is_refused_in_words(hostile: Page) -> None:
    hostile.evaluate(
        """() => getSelection().setBaseAndExtent(
            document.querySelector("#m1 .md p").firstChild, 3,
            document.querySelector("#m2 .md p").lastChild, 2)"""
    )
    hostile.keyboard.press("e")
    expect(hostile.locator("#said")).to_have_text("Select words inside one turn")
    expect(hostile.locator(".ev")).to_have_count(0)


def test_links_in_a_chat_lead_nowhere(hostile: Page) -> None:
    here = hostile.url
    hostile.get_by_text("our shop").click()
    assert hostile.url.split("#")[0] == here.split("#")[0]
    assert hostile.locator("#m2 .md [href]").count() == 0
    assert hostile.locator("#m2 b").count() == 1  # the role; what the chat wrote is text


def test_turns_go_on_from_the_one_whose_words_were_being_chosen(hostile: Page) -> None:
    for key in ("e", "j", "Enter", "ArrowRight", "j"):
        hostile.keyboard.press(key)
    expect(hostile.locator("#m3 input")).to_be_focused()
    expect(hostile.locator("#picking")).to_contain_text("press a turn’s number")
    hostile.keyboard.press("Space")
    hostile.keyboard.press("e")
    expect(hostile.locator(".ev:visible .t")).to_have_text("turn 3")


def test_numbers_pick_turns_and_letters_answer_in_evidence_mode(hostile: Page) -> None:
    for key in ("e", "3", "1", "1", "2", "4"):
        hostile.keyboard.press(key)
    expect(hostile.locator("#said")).to_have_text("There is no turn 4")
    expect(hostile.locator(".ev:visible .t")).to_have_text(["turn 2", "turn 3"])
    hostile.keyboard.press("f")
    expect(hostile.locator("#picking")).to_be_hidden()
    saved(hostile)
    assert evidence() == [{"n": 2}, {"n": 3}]


def test_a_number_of_two_digits_picks_one_turn(screen: Page, desk: Desk) -> None:
    turns = [{"n": n, "role": "user", "content": f"Turn {n}"} for n in range(1, 13)]
    Chat.objects.filter(pk=desk.chats[0].pk).update(messages=turns, message_count=12)
    screen.reload()
    ready(screen)
    for key in ("e", "1", "2"):
        screen.keyboard.press(key)
    expect(screen.locator(".ev:visible .t")).to_have_text("turn 12")
    screen.keyboard.press("1")
    expect(screen.locator(".ev:visible .t")).to_have_text(["turn 1", "turn 12"])  # after a pause
    for key in ("1", "e", "f"):  # another key ends the number: turn 1 is removed again
        screen.keyboard.press(key)
    saved(screen)
    assert evidence() == [{"n": 12}]


def test_words_are_selected_in_evidence_mode_too(hostile: Page) -> None:
    hostile.keyboard.press("e")
    select(hostile, 1, "order 8?")
    hostile.keyboard.press("e")
    expect(hostile.locator(".ev:visible q")).to_have_text("order 8?")
    expect(hostile.locator("#picking")).to_be_visible()
    select(hostile, 2, "at once")
    hostile.get_by_role("button", name="Use as evidence").click()
    hostile.keyboard.press("e")
    expect(hostile.locator("#picking")).to_be_hidden()
    hostile.keyboard.press("f")
    saved(hostile)
    assert [part["quote"] for part in evidence()] == ["order 8?", "at once"]


def test_brackets_choose_turns_too(hostile: Page) -> None:
    for key in ("e", "]", "]", "[", "Space", "e", "f"):
        hostile.keyboard.press(key)
    saved(hostile)
    assert evidence() == [{"n": 2}]


def test_a_piece_of_evidence_unfolds_the_turn_it_is_in(hostile: Page) -> None:
    for key in ("e", "]", "]", "Space", "e"):
        hostile.keyboard.press(key)
    expect(hostile.locator("#m3 pre")).to_be_hidden()
    hostile.locator(".ev:visible .t").press("Enter")
    expect(hostile.locator("#m3 pre")).to_be_visible()
