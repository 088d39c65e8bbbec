from enum import StrEnum


class RunInputModeEnum(StrEnum):
    BATCH = "batch"
    LIVE = "live"

    def __str__(self) -> str:
        return str(self.value)
