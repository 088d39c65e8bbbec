"""Errors with a message for the user."""

# Who can change a setting of the server, as messages and pages call them.
OPERATOR = "the operator of this server"
SHOWN = 60  # characters of an untrusted value in a message


class InputProblem(Exception):
    """Wrong input or usage; the message is one line and no data was written.

    `settings`: the server's settings that it is about. Pages leave their names out: who reads a page rarely
    sets them. The command line adds them.

    Examples
    --------
    >>> problem = InputProblem("the model has no price", settings=("LACE_PRICES",))
    >>> print(problem, settings_named(problem))
    the model has no price ('LACE_PRICES',)
    """

    def __init__(self, *args: object, settings: tuple[str, ...] = ()) -> None:
        super().__init__(*args)
        self.settings = settings


def settings_named(error: BaseException | None) -> tuple[str, ...]:
    """Return the settings that an error, or one of its causes, is about."""
    while error is not None:
        if isinstance(error, InputProblem) and error.settings:
            return error.settings
        error = error.__cause__
    return ()


class OutsideFailure(Exception):
    """An endpoint, broker or database failed after retries; finished work is saved."""


class FieldProblem(ValueError):
    """
    A value that is not valid, before the file is known.

    `field` is '' for the whole document; `line` (from 1) is set for JSON syntax errors.
    """

    def __init__(self, field: str, message: str, *, line: int | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message
        self.line = line


class ImportProblem(InputProblem):
    """
    A value in a file that is not valid.

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
    Format an untrusted value as one short line for a message.

    Examples
    --------
    >>> shown("two\\nlines")
    "'two\\\\nlines'"
    """
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
