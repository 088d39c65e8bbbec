"""What can go wrong outside this program, each with the words for the person in front of it."""

SHOWN = 60  # characters of a foreign value in a message


class InputProblem(Exception):
    """Wrong input or usage: the message is one clear line; nothing was written."""


class OutsideFailure(Exception):
    """An outside part (endpoint, broker, database) failed after retries; what was finished is kept."""


class FieldProblem(ValueError):
    """
    A value that cannot be taken, before the file is known.

    `field` is '' for the whole document; `line` (in the document, from 1) is known where the JSON breaks.
    """

    def __init__(self, field: str, message: str, *, line: int | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message
        self.line = line


class ImportProblem(InputProblem):
    """
    A value in a file that cannot be taken.

    Examples
    --------
    >>> print(ImportProblem("chats.jsonl", 7, "messages[2].role", "is missing"))
    chats.jsonl line 7, messages[2].role: is missing
    >>> print(ImportProblem("notes", None, "", "is a folder, not a file"))
    notes: is a folder, not a file
    """

    def __init__(self, file: str, line: int | None, field: str, message: str) -> None:
        place = file if line is None else f"{file} line {line}"
        super().__init__(f"{place}, {field}: {message}" if field else f"{place}: {message}")
        self.file = file
        self.line = line
        self.field = field
        self.message = message


def shown(value: object) -> str:
    """
    A foreign value as one short line for a message.

    Examples
    --------
    >>> shown("two\\nlines")
    "'two\\\\nlines'"
    """
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
