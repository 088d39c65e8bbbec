"""Request parser of the API with the guards of import files: a hostile body is never a 500."""

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from common.guarded_json import guarded_loads
from common.problems import FieldProblem


class GuardedJSONParser(JSONParser):
    """JSON of bounded size, depth and numbers, in UTF-8, without NaN and without a key twice."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the parsed body; raise ParseError with the reason."""
        # NB: Django's own limit guards `request.body`, not a stream that is read.
        limit = int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        raw: bytes = stream.read(limit + 1)
        if len(raw) > limit:
            raise ParseError(f"The body is larger than {limit:,} bytes.")
        try:
            return guarded_loads(raw.decode())
        except UnicodeDecodeError as error:
            raise ParseError(f"The body is not UTF-8 at byte {error.start + 1}.") from None
        except FieldProblem as problem:
            raise ParseError(str(problem)) from None
