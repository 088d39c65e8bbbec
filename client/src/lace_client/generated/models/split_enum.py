from enum import StrEnum


class SplitEnum(StrEnum):
    DEV = "dev"
    HOLDOUT = "holdout"
    TRAIN = "train"

    def __str__(self) -> str:
        return str(self.value)
