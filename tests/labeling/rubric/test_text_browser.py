"""Writing texts for raters in a real browser: the live preview; axe, CSP, narrow and dark screens."""

import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.people import Role
from labeling.rating.services.notes import note_add
from tests.browsing import assert_fine, watch
from tests.factories.guidelines import reword, write
from tests.factories.labelling_job import Desk, user_of
from tests.factories.rating_screen import sign_in
from tests.factories.rows import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EDIT = "/guidelines/criteria/{}/edit/"


@pytest.fixture
def quiet(page: Page) -> Iterator[Page]:
    """A page whose console must be clean afterwards: no CSP violation, no script error."""
    problems: list[str] = []
    watch(page, problems)
    yield page
    assert problems == []


def test_the_preview_follows_the_typing_and_the_save_makes_a_version(
    quiet: Page, context: BrowserContext, live_server: LiveServer, desk: Desk
) -> None:
    sign_in(context, live_server, make_user("otto", Role.AUTHOR))
    criterion = desk.criteria[0]
    quiet.goto(live_server.url + EDIT.format(criterion.key))
    preview = quiet.locator("#preview")
    expect(preview).to_contain_text(criterion.versions.get().question)
    quiet.get_by_label("Guideline", exact=True).press_sequentially("Look **twice**.")
    expect(preview.locator("strong")).to_have_text("twice")
    quiet.get_by_label("Example of False").fill("<img src=x onerror=alert(1)>")
    expect(preview).to_contain_text("<img src=x onerror=alert(1)>")
    quiet.get_by_label("Reason").fill("Raters asked")
    quiet.get_by_label("Reason").press("Enter")
    expect(quiet.get_by_role("status")).to_contain_text("Version 2 saved")
    assert criterion.versions.latest("number").guideline == "Look **twice**."


def pages(desk: Desk) -> list[str]:
    """Every page of this part, each with something on it."""
    key, rubric = desk.criteria[0].key, desk.rubric.pk
    for n, text in enumerate(("# Read\n\nAll of it.", "# Read\n\nAll of it, **twice**.")):
        write(desk, text, base=n)
    added = note_add(
        rater=desk.rater,
        assignment=desk.taken(),
        kind="unclear",
        criterion=desk.criteria[0],
        text="Of what?",
        client_id=uuid.uuid4(),
    )
    reword(
        desk.criteria[0], definition="Another one.", guideline="Look.", true_example="A", false_example="B"
    )
    return [
        "/guidelines/",
        f"/guidelines/{rubric}/?old=1&new=2",
        f"/guidelines/{rubric}/edit/",
        f"/guidelines/criteria/{key}/?old=1&new=2",
        EDIT.format(key),
        "/notes/",
        f"/notes/{added.note.pk}/",
        "/workspace/",
        "/workspace/log/",
    ]


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
def test_nothing_serious_for_axe_and_no_sideways_scrolling(
    quiet: Page, context: BrowserContext, live_server: LiveServer, desk: Desk
) -> None:
    visits = [(make_user("ines", Role.LEAD), pages(desk))]
    visits.append((user_of(desk.rater), [f"/guidelines/{desk.rubric.pk}/read/?was=1"]))
    for user, urls in visits:
        sign_in(context, live_server, user)
        for url in urls:
            quiet.goto(live_server.url + url)
            assert_fine(quiet, url)
