from enum import StrEnum


class RunStateEnum(StrEnum):
    CANCELLED = "cancelled"
    DONE = "done"
    DONE_WITH_FAILURES = "done_with_failures"
    PAUSED = "paused"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
