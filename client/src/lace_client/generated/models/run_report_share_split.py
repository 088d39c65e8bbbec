from enum import StrEnum


class RunReportShareSplit(StrEnum):
    DEV = "dev"
    HOLDOUT = "holdout"
    TRAIN = "train"

    def __str__(self) -> str:
        return str(self.value)
