"""Excel workbooks, written row by row."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell

LONGEST_CELL = 32_767  # characters, Excel's limit
MOST_ROWS = 1_048_576  # of a sheet, Excel's limit, the header included
CUT = "… (cut: Excel holds 32,767 characters)"
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def workbook_write(
    target: IO[bytes], lines: Iterable[Mapping[str, Any]], columns: Sequence[str], *, title: str
) -> None:
    """Write the lines as a workbook in constant memory; a second sheet continues what the first cannot hold.

    No cell is a formula: texts are stored as texts, and those that begin like a formula are marked as quoted.
    Lists and objects are JSON, an absent field is an empty cell, a `value` of None is not_applicable.
    """
    book = Workbook(write_only=True)
    sheet, rows = None, 0
    for line in lines:
        if sheet is None or rows == MOST_ROWS:
            sheet, rows = _sheet(book, columns, title), 1
        sheet.append([_cell(sheet, name, line) for name in columns])
        rows += 1
    if sheet is None:
        _sheet(book, columns, title)
    book.save(target)


def _sheet(book: Workbook, columns: Sequence[str], title: str) -> Any:
    number = len(book.worksheets) + 1
    sheet = book.create_sheet(title if number == 1 else f"{title} {number}")
    sheet.freeze_panes = "A2"
    sheet.append(list(columns))
    return sheet


def _cell(sheet: Any, name: str, line: Mapping[str, Any]) -> Any:
    if name not in line:
        return None
    value = line[name]
    if value is None:
        return "not_applicable" if name == "value" else None
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
    text = _UNSTORABLE.sub("\ufffd", text)
    if len(text) > LONGEST_CELL:
        text = text[: LONGEST_CELL - len(CUT)] + CUT
    cell = WriteOnlyCell(sheet, value=text)
    cell.data_type = "s"  # NB: openpyxl reads a formula, an error or a date in some texts
    if text.startswith(_FORMULA):
        cell.quotePrefix = True
    return cell
