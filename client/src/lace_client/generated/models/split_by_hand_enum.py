from enum import StrEnum


class SplitByHandEnum(StrEnum):
    DEV = "dev"
    TRAIN = "train"

    def __str__(self) -> str:
        return str(self.value)
