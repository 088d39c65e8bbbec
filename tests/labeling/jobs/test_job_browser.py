"""Opening a labelling job in a real browser: what it asks for is counted beside the form."""

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.people import Role, User
from tests.factories.labelling_job import Desk
from tests.factories.rating_screen import sign_in
from tests.factories.rows import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_size_follows_the_choice_of_three_hundred_raters(
    page: Page, context: BrowserContext, live_server: LiveServer, desk: Desk
) -> None:
    people = User.objects.bulk_create(User(username=f"person {n}") for n in range(300))
    raters = Group.objects.get(name=Role.RATER)
    for person in people:
        person.groups.add(raters)
    sign_in(context, live_server, make_user("ines", Role.LEAD))
    page.goto(f"{live_server.url}{reverse('labeling:job_new')}?set={desk.chat_set.pk}")
    size = page.locator("#size")
    expect(size).to_contain_text("Choose raters or a group.")
    page.evaluate(
        """() => {
            for (const box of document.querySelectorAll("[name=raters]")) box.checked = true;
            document.querySelector("[name=raters]").dispatchEvent(new Event("change", { bubbles: true }));
        }"""
    )
    expect(size).to_contain_text("302")
    expect(size).not_to_contain_text("Choose raters")
