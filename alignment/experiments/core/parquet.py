"""Parquet files, written piece by piece."""

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from common.jsonl import in_batches

ROWS_A_GROUP = 20_000


class _Pieces(io.RawIOBase):
    """A file that is only written to; `take` returns what was written since the last time."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._length

    def write(self, data: Any) -> int:
        """Take the bytes."""
        piece = bytes(data)
        self._written.append(piece)
        self._length += len(piece)
        return len(piece)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        pieces, self._written = self._written, []
        return b"".join(pieces)


def metric_parquet(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield a Parquet file of metric rows; memory holds one group of rows.

    Timestamps are in UTC, with microseconds.
    """
    # NB: imported here, as it takes 60 MB of memory in each process that has no such file to write.
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema(
        [
            ("unit_id", pa.string()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("experiment_id", pa.string()),
            ("variation_id", pa.string()),
            ("metric", pa.string()),
            ("value", pa.int64()),
            ("weight", pa.float64()),
        ]
    )
    target = _Pieces()
    with parquet.ParquetWriter(target, schema) as writer:
        for batch in in_batches(rows, ROWS_A_GROUP):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            yield target.take()
    yield target.take()
