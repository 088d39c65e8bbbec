"""Planted verdicts at the imitated endpoints of nine vendors, by each engine, and what was learned there."""

from collections.abc import Iterator

from bench import Figure
from tests.factories.vendor_runs import TABLE_HEAD, swept, table_row
from tests.factories.vendors import IN_FLIGHT, NAMINGS, VENDORS, planted_set

CHATS = 20


def figures() -> Iterator[Figure]:
    """Verdicts as planted, and refused requests: each slot may meet a refusal once. Then the table."""
    chat_set, rows = planted_set(CHATS), list(TABLE_HEAD)
    for vendor in VENDORS:
        found = {naming: swept(vendor, naming, chat_set) for naming in NAMINGS}
        for naming, sweep in found.items():
            name = f"{vendor.name}, {naming} name"
            yield Figure(f"{name}: verdicts as planted", sweep.right, sweep.total, "", floor=True)
            most = IN_FLIGHT * max(1, len(sweep.learned))
            yield Figure(f"{name}: requests refused", sweep.refused, most, "")
        rows.append(table_row(vendor, {naming: sweep.learned for naming, sweep in found.items()}))
    print("\n".join(rows), flush=True)
