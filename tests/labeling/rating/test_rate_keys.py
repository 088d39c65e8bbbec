"""Which keys answer and which only say that they don't; the definition and the meaning of an answer."""

import pytest
from playwright.sync_api import Page, expect

from labeling.models.labels import Label
from labeling.models.rubric import Criterion, CriterionVersion
from tests.factories.rating_screen import answers, question, ready, saved

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_space_and_arrows_never_answer_wherever_the_focus_is(screen: Page) -> None:
    for key in ("j", "Space", "ArrowLeft", "ArrowRight"):
        screen.keyboard.press(key)
    assert screen.evaluate("document.activeElement.matches('form.open')")
    for value in ("true", "false"):
        choice = screen.locator(f".choice [value={value}]:visible")
        for key in ("Space", "ArrowLeft", "ArrowRight"):
            choice.press(key)
            expect(screen.locator("#said")).to_contain_text("has no meaning here. ? lists all keys")
    expect(screen.locator("[aria-pressed=true]:visible")).to_have_count(0)
    expect(question(screen)).to_have_text("Is brief so?")
    assert not Label.objects.exists()
    screen.locator(".choice [value=false]:visible").press("Enter")
    saved(screen)
    assert answers() == {"brief": False}


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("x", "“x” has no meaning here. ? lists all keys"),
        ("Space", "Space has no meaning here. ? lists all keys"),
        ("n", "This criterion always applies"),
        ("b", "No chat was submitted in the last ten seconds"),
        ("u", "Nothing to undo"),
    ],
)
def test_a_key_that_can_do_nothing_says_so(screen: Page, key: str, says: str) -> None:
    screen.keyboard.press(key)
    expect(screen.locator("#said")).to_have_text(says)
    assert not Label.objects.exists()


def test_a_key_folds_and_unfolds_the_definition(screen: Page) -> None:
    definition = screen.locator("form.open:visible .def")
    expect(definition).to_be_visible()
    screen.keyboard.press("d")
    expect(definition).to_be_hidden()
    expect(screen.locator("summary:visible")).to_contain_text("True when polite.")
    screen.keyboard.press("d")
    expect(definition).to_be_visible()


def test_the_screen_says_which_answer_is_good_where_false_is_and_asks_for_evidence_with_the_other(
    screen: Page,
) -> None:
    CriterionVersion.objects.filter(criterion__key="polite").update(passes_when=False)
    Criterion.objects.filter(key="polite").update(evidence_on_fail=True)
    screen.reload()
    ready(screen)
    choices = screen.locator(".choice:visible button")
    expect(choices.first).to_contain_text("True = bad")
    expect(choices.last).to_contain_text("False = good")
    need = screen.locator(".need:visible")
    expect(need).to_have_text("required for True")
    screen.keyboard.press("t")
    expect(screen.locator("#said")).to_have_text("True needs evidence. Press e, then the number of a turn")
    expect(need).to_have_class("need unmet")
    for key in "e2e":
        screen.keyboard.press(key)
    expect(question(screen)).to_have_text("Is brief so?")
    expect(screen.locator("[data-criterion=polite] .ans")).to_have_text("True = bad")
    expect(choices.first).not_to_contain_text("=")
    saved(screen)
