"""Pages of lists in the API: one class, with size, order, style and limit set by each view."""

from typing import Any

import pytest
from rest_framework.test import APIRequestFactory

from common.api import PagedList
from labeling.models.rubric import Dimension

NUMBERS = list(range(1, 8))


class Numbers(PagedList[Any]):
    """The numbers from 1 to 7, three per page."""

    authentication_classes = ()
    permission_classes = ()
    page_size = 3

    def get_queryset(self) -> Any:
        return NUMBERS

    def results(self, page: Any) -> Any:
        return list(page)


class Rows(Numbers):
    """Dimensions by key, two per page."""

    page_size = 2
    page_order = "key"
    largest_page = 4

    def get_queryset(self) -> Any:
        return Dimension.objects.all()

    def results(self, page: Any) -> Any:
        return [row.key for row in page]


def page(view: type[PagedList[Any]], address: str = "/", **options: Any) -> Any:
    return view.as_view(**options)(APIRequestFactory().get(address)).data


def test_pages_by_number_have_a_count() -> None:
    first = page(Numbers, page_style="number")
    assert list(first) == ["count", "next", "previous", "results"]
    assert (first["count"], first["previous"], first["results"]) == (7, None, [1, 2, 3])
    assert page(Numbers, first["next"], page_style="number")["results"] == [4, 5, 6]


@pytest.mark.parametrize(("limit", "length"), [("", 3), ("?limit=2", 2), ("?limit=5", 5)])
def test_pages_by_offset_are_limited(limit: str, length: int) -> None:
    answer = page(Numbers, f"/{limit}", page_style="offset", largest_page=5)
    assert list(answer) == ["count", "next", "previous", "results"]
    assert answer["results"] == NUMBERS[:length]


@pytest.mark.django_db
def test_pages_by_cursor_link_to_both_neighbours() -> None:
    for key in "edcba":
        Dimension.objects.create(key=key, name=key)
    first = page(Rows)
    assert (list(first), first["previous"], first["results"]) == (
        ["next", "previous", "results"],
        None,
        ["a", "b"],
    )
    second = page(Rows, first["next"])
    assert second["results"] == ["c", "d"]
    assert page(Rows, second["previous"])["results"] == ["a", "b"]
    last = page(Rows, second["next"])
    assert (last["next"], last["results"]) == (None, ["e"])


@pytest.mark.django_db
@pytest.mark.parametrize(("query", "length"), [("", 2), ("?page_size=3", 3), ("?page_size=4", 4)])
def test_callers_choose_the_size_of_pages_up_to_the_limit(query: str, length: int) -> None:
    for key in "edcba":
        Dimension.objects.create(key=key, name=key)
    assert len(page(Rows, f"/{query}")["results"]) == length


@pytest.mark.parametrize(
    ("query", "options", "sentence"),
    [
        ("page_size=0", {"largest_page": 4}, "page_size must be a whole number from 1 to 4."),
        ("page_size=5", {"largest_page": 4}, "page_size must be a whole number from 1 to 4."),
        ("page_size=x", {"largest_page": 4}, "page_size must be a whole number from 1 to 4."),
        ("page_size=3", {}, "There is no parameter 'page_size': known are cursor."),
        ("limit=9", {"page_style": "offset"}, "limit must be a whole number from 1 to 3."),
        ("offset=-1", {"page_style": "offset"}, "offset must be a whole number from 0 to 2,147,483,647."),
        ("page=9", {"page_style": "number"}, "There is no page '9'."),
        ("page=x", {"page_style": "number"}, "page must be a whole number from 1 to 2,147,483,647."),
        ("nonsense=1", {"page_style": "number"}, "There is no parameter 'nonsense': known are page."),
        ("page=1&page=2", {"page_style": "number"}, "page is given more than once."),
        ("page=", {"page_style": "number"}, "page is empty: give a value, or leave it out."),
    ],
)
def test_a_bad_parameter_is_400_and_named(query: str, options: dict[str, Any], sentence: str) -> None:
    answer = Numbers.as_view(**options)(APIRequestFactory().get(f"/?{query}"))
    (messages,) = answer.data.values()
    assert (answer.status_code, messages) == (400, [sentence])


@pytest.mark.django_db
def test_an_invented_cursor_is_400_and_named() -> None:
    answer = Rows.as_view()(APIRequestFactory().get("/?cursor=nonsense"))
    assert (answer.status_code, answer.data) == (400, {"cursor": ["There is no cursor 'nonsense'."]})


def test_options_need_no_serializer() -> None:
    answer = Numbers.as_view()(APIRequestFactory().options("/"))
    assert (answer.status_code, "actions" in answer.data) == (200, False)
