"""One Export menu a page, with everything that its reader may download."""

import re
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories.compared_runs import Compared, text_of, urls
from tests.factories.stored_reports import page_of, stored

pytestmark = pytest.mark.django_db

REPORT = ["Report, CSV", "Report, JSON"]
VERDICTS = ["Verdicts, CSV", "Verdicts, JSONL"]
SCORES = ["Session scores, CSV"]
LABELS = ["Labels, CSV", "Labels, JSONL"]


def menu_of(client: Client, url: str) -> str:
    """Return the one menu with exports; nothing else on the page exports."""
    before, menu = text_of(client.get(url)).split('class="formats"')
    assert before.split("<main", 1)[1].count("Export") == 1  # the button
    return menu.split("</details>", 1)[0]


def links(client: Client, url: str) -> dict[str, str]:
    menu = menu_of(client, url)
    return {name: unescape(to) for to, name in re.findall(r'href="([^"]+)" aria-label="([^"]+)"', menu)}


def criterion_page(compared: Compared) -> str:
    return reverse("alignment:criterion_report", args=[compared.run.pk, "polite"])


def assert_downloads(client: Client, found: dict[str, str], *, query: str) -> None:
    """Each link works, and has the filters of the page unless its file has none."""
    for name, url in found.items():
        assert client.get(url).status_code == 200, name
        assert name.startswith("Labels") or url.endswith(query), name


def test_a_report_exports_itself_verdicts_scores_and_for_leads_labels(
    compared: Compared, lead: Client, author: Client
) -> None:
    url = urls(compared)["report"] + "?split=dev"
    assert list(links(author, url)) == [*REPORT, *VERDICTS, *SCORES]
    found = links(lead, url)
    assert list(found) == [*REPORT, *VERDICTS, *SCORES, *LABELS]
    assert_downloads(lead, found, query="?split=dev")


def test_a_stored_report_exports_itself_and_what_its_run_and_set_have_today(
    compared: Compared, lead: Client, author: Client
) -> None:
    number = stored(lead, compared, "?split=dev")
    assert list(links(author, page_of(number))) == [*REPORT, *VERDICTS, *SCORES]
    found = links(lead, page_of(number))
    assert list(found) == [*REPORT, *VERDICTS, *SCORES, *LABELS]
    assert [found.pop(name) for name in REPORT] == [
        reverse("alignment:report_table", args=[number]),
        reverse("api_stored_report", args=[number]),
    ]
    assert_downloads(lead, found, query="?split=dev")
    menu = menu_of(lead, page_of(number))
    assert "Labels of the set, today" in menu and "Session scores, today" in menu


def test_a_stored_report_without_a_judge_exports_no_verdicts(compared: Compared, lead: Client) -> None:
    number = stored(lead, compared, page="api_set")
    assert list(links(lead, page_of(number))) == [*REPORT, *LABELS]


def test_a_criterion_report_exports_its_json_verdicts_and_for_leads_labels(
    compared: Compared, lead: Client, author: Client
) -> None:
    url = criterion_page(compared) + "?split=dev"
    assert list(links(author, url)) == ["Report, JSON", *VERDICTS]
    found = links(lead, url)
    assert list(found) == ["Report, JSON", *VERDICTS, *LABELS]
    assert found["Report, JSON"].startswith(reverse("api_criterion_report", args=[compared.run.pk, "polite"]))
    assert_downloads(lead, found, query="?split=dev")
    assert "Verdicts, all criteria" in menu_of(lead, url)


def test_only_the_page_with_tabs_offers_to_print_them(compared: Compared, lead: Client) -> None:
    pages = [urls(compared)["report"], page_of(stored(lead, compared)), criterion_page(compared)]
    assert ["Print, with all tabs" in menu_of(lead, url) for url in pages] == [True, False, False]
