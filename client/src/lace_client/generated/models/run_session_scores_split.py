from enum import StrEnum


class RunSessionScoresSplit(StrEnum):
    DEV = "dev"
    HOLDOUT = "holdout"
    TRAIN = "train"

    def __str__(self) -> str:
        return str(self.value)
