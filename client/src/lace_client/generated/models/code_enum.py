from enum import StrEnum


class CodeEnum(StrEnum):
    INVALID = "invalid"
    REFUSED = "refused"

    def __str__(self) -> str:
        return str(self.value)
