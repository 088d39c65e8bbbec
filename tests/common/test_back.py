"""Where the link *Back* leads: the page that the reader came from, on this site alone."""

import pytest
from django.http import HttpRequest
from django.test import RequestFactory
from django.urls import resolve

from alignment.comparison.views import back_of
from common.back import Origin, origin_of

HOST = "http://testserver"
CHAT, LIST, REPORT = "/runs/1/chats/2/", "/misalignments/?criterion=polite", "/reports/runs/1/"


def request_to(path: str, *, referer: str = "", **query: str) -> HttpRequest:
    request = RequestFactory().get(path, query, headers={"referer": referer} if referer else {})
    request.resolver_match = resolve(path)
    return request


def test_the_page_that_linked_here_is_taken_with_its_query() -> None:
    request = request_to(CHAT, referer=HOST + LIST)
    assert origin_of(request) == Origin(LIST, "alignment:misalignment_list")


def test_the_page_named_in_the_address_comes_first() -> None:
    request = request_to(CHAT, referer=HOST + LIST, back=REPORT)
    assert origin_of(request) == Origin(REPORT, "alignment:report_run")


def test_a_page_of_the_same_route_passes_on_what_it_names() -> None:
    passed_on = request_to(CHAT, referer=f"{HOST}/runs/1/chats/3/?back=%2Freports%2Fruns%2F1%2F")
    assert origin_of(passed_on) == Origin(REPORT, "alignment:report_run")
    assert origin_of(request_to(CHAT, referer=f"{HOST}/runs/1/chats/3/")) is None


@pytest.mark.parametrize(
    "back",
    [
        "https://evil.example/reports/",
        "//evil.example/",
        "javascript:alert(1)",
        "/no/such/page/",
        "reports/",
        f"/reports/?{'x' * 2000}",
    ],
)
def test_other_sites_and_unknown_pages_are_ignored(back: str) -> None:
    assert origin_of(request_to(CHAT, back=back)) is None
    assert origin_of(request_to(CHAT, referer=back)) is None


@pytest.mark.parametrize(
    ("page", "came_from", "words"),
    [
        (CHAT, LIST, "disagreements"),
        (CHAT, REPORT, "the report"),
        (CHAT, "/criteria/polite/prompt/", "the prompt"),
        (CHAT, "/workspace/", "the page before"),
        ("/misalignments/", REPORT, "the report"),
        ("/misalignments/", CHAT, ""),  # the reader has just come back from it
        ("/criteria/polite/prompt/", CHAT, "the chat"),
    ],
)
def test_back_is_named_and_never_leads_further_in(page: str, came_from: str, words: str) -> None:
    back = back_of(request_to(page, referer=HOST + came_from))
    assert (back.words if back else "") == words


def test_what_is_no_address_leads_nowhere() -> None:
    assert origin_of(request_to(CHAT, referer="http://[x")) is None
    assert origin_of(request_to(CHAT, back="/\\[x")) is None
