"""Files that browsers send: to the disk while they arrive, up to a limit, and only from who may send some."""

from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import SkipFile, StopUpload, TemporaryFileUploadHandler

MEGABYTE = 1024**2


class LimitedUpload(TemporaryFileUploadHandler):
    """Takes one request's files; `request.upload_too_large` says that they were more than the limit."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.received = 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Refuse files of who may not import: nothing else takes files."""
        user = getattr(self.request, "user", None)
        if user is None or not user.has_perm("labeling.manage_labeling"):
            raise SkipFile
        super().new_file(*args, **kwargs)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a part of the file; stop reading the request beyond the limit."""
        self.received += len(raw_data)
        if self.received > settings.LACE_IMPORT_MB * MEGABYTE:
            self.request.upload_too_large = True  # type: ignore[union-attr]
            raise StopUpload(connection_reset=True)
        super().receive_data_chunk(raw_data, start)
