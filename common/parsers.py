"""Request parser of the API with the guards of import files: a hostile body is never a 500."""

import zlib
from collections.abc import Mapping
from hashlib import sha256
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from common.guarded_json import MAX_VALUES, guarded_loads
from common.problems import FieldProblem, shown


class GuardedJSONParser(JSONParser):
    """JSON of bounded size, depth and numbers, in UTF-8, without NaN and without a key twice."""

    most_values = MAX_VALUES

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the parsed body; raise ParseError with the reason."""
        raw = self.read(stream, parser_context or {})
        try:
            return guarded_loads(raw.decode(), most=self.most_values)
        except UnicodeDecodeError as error:
            raise ParseError(f"The body is not UTF-8 at byte {error.start + 1}.") from None
        except FieldProblem as problem:
            raise ParseError(str(problem)) from None

    def read(self, stream: IO[Any], context: Mapping[str, Any]) -> bytes:
        """Return the body; raise ParseError where it is too large."""
        # NB: Django's own limit guards `request.body`, not a stream that is read.
        return _bounded(stream, int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE))


class BulkJSONParser(GuardedJSONParser):
    """JSON with many rows, which may be packed with gzip; its SHA-256 becomes `body_digest` of the view."""

    most_values = 2_000_000

    def read(self, stream: IO[Any], context: Mapping[str, Any]) -> bytes:
        """Return the body, unpacked; raise ParseError where it is too large or no gzip."""
        limit = int(settings.LACE_INGEST_MB) * 1024**2
        raw = _bounded(stream, limit)
        packing = context["request"].headers.get("Content-Encoding", "identity").strip().lower()
        if packing == "gzip":
            raw = _unpacked(raw, limit)
        elif packing != "identity":
            raise ParseError(f"Content-Encoding must be gzip or left out, not {shown(packing)}.")
        context["view"].body_digest = sha256(raw).hexdigest()
        return raw


def _bounded(stream: IO[Any], limit: int) -> bytes:
    raw: bytes = stream.read(limit + 1)
    if len(raw) > limit:
        raise ParseError(f"The body is larger than {limit:,} bytes.")
    return raw


def _unpacked(raw: bytes, limit: int) -> bytes:
    """Return what gzip has packed: a few bytes may claim to be gigabytes."""
    packed = zlib.decompressobj(wbits=31)
    try:
        body = packed.decompress(raw, limit + 1)
    except zlib.error as error:
        raise ParseError(f"The body is no gzip: {error}.") from None
    if len(body) > limit:
        raise ParseError(f"The unpacked body is larger than {limit:,} bytes.")
    if not packed.eof or packed.unused_data:
        raise ParseError("The body is no gzip: it is cut off, or other data follows.")
    return body
