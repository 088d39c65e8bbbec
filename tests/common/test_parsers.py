"""The API's request parser: hostile bodies are a 400 that says why."""

import io
from typing import Any

import pytest
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from common.parsers import GuardedJSONParser


class Echo(APIView):
    authentication_classes = ()
    permission_classes = ()
    parser_classes = (GuardedJSONParser,)

    def post(self, request: Request) -> Response:
        return Response(request.data)


def post(body: bytes) -> Any:
    request = APIRequestFactory().post("/", body, content_type="application/json")
    return Echo.as_view()(request)


def test_ordinary_json_goes_through() -> None:
    answer = post('{"value": null, "rationale": "ä😀"}'.encode())
    assert (answer.status_code, answer.data) == (200, {"value": None, "rationale": "ä😀"})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[" * 100_000, "deeper than 32"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": ' + b"1" * 5000 + b"}", "4,300 digits"),
        (b'{"a": 1, "a": 2}', "twice"),
        (rb'{"a": "\u0000"}', "NUL"),
        (rb'{"a": "\ud800"}', "surrogate"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b" ", "not JSON"),
        (b'{"a": 1', "not JSON"),
    ],
)
def test_a_hostile_body_is_a_400(body: bytes, words: str) -> None:
    answer = post(body)
    assert answer.status_code == 400
    assert words in str(answer.data["detail"])


def test_the_plain_parser_crashes_on_what_this_one_refuses() -> None:
    with pytest.raises(RecursionError):
        JSONParser().parse(io.BytesIO(b"[" * 100_000))


def test_a_body_over_the_limit_is_refused_before_it_is_parsed(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    with pytest.raises(ParseError, match="larger than 100 bytes"):
        GuardedJSONParser().parse(io.BytesIO(b'"' + b"x" * 1000))
