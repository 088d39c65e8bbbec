from enum import StrEnum


class RegressionInputSplitEnum(StrEnum):
    DEV = "dev"
    HOLDOUT = "holdout"

    def __str__(self) -> str:
        return str(self.value)
