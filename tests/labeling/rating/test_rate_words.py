"""What a rater can write beside the labels, and the judge's answers: notes, key sets, the reveal."""

import uuid

import pytest
from playwright.sync_api import Page, Request, Route, expect

from labeling.models.labels import Assignment, Label, LabelRevision, RaterNote
from labeling.models.people import Workspace
from labeling.rating.services.submission import assignment_submit
from tests.factories.judged_job import judge_desk
from tests.factories.labelling_job import Desk, answer_all
from tests.factories.rating_screen import answers, chosen, forgive, question, saved

pytestmark = [pytest.mark.browser, pytest.mark.heavy, pytest.mark.django_db(transaction=True)]


# ---------- notes ----------


def test_a_chat_is_flagged_to_the_lead_with_keys_alone(screen: Page) -> None:
    screen.keyboard.press("!")
    dialog = screen.get_by_role("dialog", name="Note to the lead")
    expect(dialog.get_by_label("A lead should look")).to_be_checked()
    screen.keyboard.type("The customer gives a card number")
    dialog.get_by_role("button", name="Send").press("Enter")
    expect(screen.locator("#said")).to_have_text("Sent to the lead")
    note = RaterNote.objects.get()
    assert (note.kind, note.text) == ("flag", "The customer gives a card number")
    assert (note.chat.external_id, note.criterion) == ("chat-1", None)
    screen.keyboard.press("t")
    saved(screen)


def test_an_unclear_criterion_is_reported_with_the_text_of_that_time(screen: Page) -> None:
    screen.keyboard.press("j")
    screen.keyboard.press("i")
    dialog = screen.get_by_role("dialog", name="Note to the lead")
    expect(dialog.locator("blockquote")).to_have_text("Is brief so? True when brief.")
    screen.keyboard.type("Is a long list brief?")
    dialog.get_by_role("button", name="Send").press("Enter")
    expect(dialog).to_be_hidden()
    note = RaterNote.objects.get()
    assert note.kind == "unclear"
    assert note.criterion is not None
    assert note.version is not None
    assert (note.criterion.key, note.version.number) == ("brief", 1)


def test_a_note_whose_reply_got_lost_is_there_once(screen: Page, problems: list[str]) -> None:
    tries: list[Request] = []

    def lose_first(route: Route) -> None:
        tries.append(route.request)
        if len(tries) > 1:
            route.continue_()
            return
        route.fetch()
        route.abort()

    screen.route("**/notes/", lose_first)
    screen.keyboard.press("!")
    dialog = screen.get_by_role("dialog", name="Note to the lead")
    dialog.get_by_label("A remark on the chat").check()
    dialog.get_by_role("button", name="Send").press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("Describe it in a few words.")
    dialog.get_by_label("In your words").fill("Two languages")
    dialog.get_by_role("button", name="Send").press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("can’t be reached")
    dialog.get_by_role("button", name="Send").press("Enter")
    expect(dialog).to_be_hidden()
    assert [note.kind for note in RaterNote.objects.all()] == ["comment"]
    problems[:] = [text for text in problems if "ERR_FAILED" not in text]


def test_a_note_changed_after_its_reply_got_lost_is_sent_as_well(screen: Page, problems: list[str]) -> None:
    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    screen.route("**/notes/", lose)
    screen.keyboard.press("!")
    dialog = screen.get_by_role("dialog", name="Note to the lead")
    words = dialog.get_by_label("In your words")
    words.fill("A card")
    dialog.get_by_role("button", name="Send").press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("can’t be reached")
    screen.unroute("**/notes/")
    words.fill("A card number")
    dialog.get_by_role("button", name="Send").press("Enter")
    expect(dialog).to_be_hidden()
    assert [note.text for note in RaterNote.objects.order_by("pk")] == ["A card", "A card number"]
    forgive(problems, "ERR_FAILED", "409")


def test_a_rater_finds_their_own_notes_on_the_chat_and_nobody_elses(screen: Page, desk: Desk) -> None:
    notes = screen.locator("#notes")
    expect(notes).to_be_hidden()
    chat = Assignment.objects.get(state="leased").chat
    for rater, text in ((desk.raters[1], "Not yours"), (desk.rater, "Is <b>that</b> polite?")):
        RaterNote.objects.create(
            rater=rater,
            chat=chat,
            kind="unclear",
            criterion=desk.criteria[0],
            text=text,
            client_id=uuid.uuid4(),
        )
    screen.reload()
    expect(notes.get_by_role("listitem")).to_have_text(["Criterion unclear: Polite Is <b>that</b> polite?"])
    screen.keyboard.press("!")
    screen.keyboard.type("Two languages")
    screen.get_by_role("button", name="Send").press("Enter")
    expect(notes.get_by_role("listitem").last).to_have_text("For the lead Two languages")


# ---------- key sets ----------


def test_another_key_set_is_chosen_from_the_list_and_kept(screen: Page) -> None:
    screen.keyboard.press("?")
    screen.get_by_label("Key set").select_option("Left hand")
    screen.keyboard.press("Escape")
    screen.reload()
    expect(screen.locator("form.open:visible kbd[data-key=true]")).to_have_text("q")
    screen.keyboard.press("t")
    expect(question(screen)).to_have_text("Is polite so?")
    for key in "qwd":
        screen.keyboard.press(key)
    expect(question(screen)).to_have_text("Is correct so?")
    saved(screen)
    assert answers() == {"polite": True, "brief": False}


def test_no_key_means_two_things_and_only_the_listed_sets_exist(screen: Page) -> None:
    screen.evaluate("localStorage.setItem('lace-keys', '{\"true\": [\"alt+tab\"]}')")
    screen.reload()
    screen.keyboard.press("?")
    options = screen.get_by_label("Key set").locator("option")
    expect(options).to_have_text(["Letters and digits", "Digits only for answers", "Left hand"])
    expect(screen.get_by_label("Key set")).to_have_value("standard")
    sets = screen.evaluate(
        """async () => {
            const { href } = document.querySelector("link[href$='common/keys.js']");
            return Object.values((await import(href)).SETS).map(({ keys }) => Object.values(keys).flat());
        }"""
    )
    for keys in sets:
        assert len(keys) == len(set(keys)) > 15


def test_a_keyboard_for_another_script_answers_by_the_place_of_its_keys(screen: Page) -> None:
    fire = """document.body.dispatchEvent(new KeyboardEvent(
        "keydown", {key: "е", code: "KeyT", bubbles: true, cancelable: true}))"""
    screen.evaluate(fire)
    saved(screen)
    assert answers() == {"polite": True}


# ---------- the judge's view ----------


def submitted(screen: Page, desk: Desk) -> Assignment:
    assignment = Assignment.objects.get(state="leased")
    answer_all(assignment)
    return assignment_submit(assignment=assignment, rater=desk.rater)


def test_the_judges_view_is_shown_on_request_and_later_changes_are_marked(screen: Page, desk: Desk) -> None:
    Workspace.objects.update(reveal_after_submit=True)
    judge_desk(desk, text="Because of <b>turn 2</b>.")
    expect(screen.locator("#reveal")).to_have_count(0)
    submitted(screen, desk)
    screen.reload()
    expect(screen.locator(".judged")).to_have_count(0)
    screen.get_by_role("button", name="Show the judge’s view").press("Enter")
    expect(screen.locator(".judged")).to_have_count(4)
    expect(screen.locator(".judged .j").first).to_have_text("False")
    expect(screen.locator(".judged .why-judge").first).to_have_text("Because of <b>turn 2</b>.")
    expect(screen.locator("#why")).to_have_text("Changes are saved but not counted")
    screen.keyboard.press("f")
    saved(screen)
    assert Label.objects.get(criterion__key="polite").value is True
    assert LabelRevision.objects.get(post_reveal=True).value is False
    expect(screen.locator("#why")).to_have_text("Changes are saved but not counted")
    expect(screen.locator(".uncounted:visible")).to_have_text(
        "Not counted: changed after you saw the judge’s view."
    )
    screen.reload()
    expect(chosen(screen)).to_have_attribute("value", "false")
    expect(screen.locator(".uncounted:visible")).to_be_visible()


def test_without_the_workspaces_leave_there_is_no_button(screen: Page, desk: Desk) -> None:
    judge_desk(desk)
    submitted(screen, desk)
    screen.reload()
    expect(screen.locator("#onwards")).to_be_visible()
    expect(screen.locator("#reveal")).to_have_count(0)
