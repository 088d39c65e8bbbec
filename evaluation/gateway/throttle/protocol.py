"""The interface of a throttle."""

from typing import Protocol

from evaluation.gateway.replies import Outcome
from evaluation.gateway.retries import Streak


class EndpointDown(Exception):
    """No call to this endpoint can succeed now; the message is one line.

    `lasting` means that only a user can fix it (refused key, unknown model); otherwise it may pass.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class Throttle(Protocol):
    """One model's throttle in one process; all workers share rates and circuit breaker."""

    async def enter(self, *, tokens: int) -> None:
        """Wait for a slot and until a request of about `tokens` tokens may leave; raises EndpointDown."""

    def seen(self, outcome: Outcome, *, call: str) -> Streak:
        """Learn from an outcome at once: slow down, open or close the circuit.

        `call` is the key of the attempt's call; returns the failures since the last answer.
        """

    def leave(self) -> None:
        """Free the slot, once the answer is committed."""
