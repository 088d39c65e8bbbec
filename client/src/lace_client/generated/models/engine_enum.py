from enum import StrEnum


class EngineEnum(StrEnum):
    AUTO = "auto"
    DEBATE = "debate"
    DIRECT = "direct"
    REFLECTION = "reflection"

    def __str__(self) -> str:
        return str(self.value)
