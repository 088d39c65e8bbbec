from enum import StrEnum


class RunsPurpose(StrEnum):
    ANCHORS = "anchors"
    CONFIRM = "confirm"
    EVALUATION = "evaluation"
    IMPORT = "import"
    NOISE = "noise"
    REGRESSION = "regression"
    TRY = "try"

    def __str__(self) -> str:
        return str(self.value)
