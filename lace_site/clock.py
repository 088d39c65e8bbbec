"""The clock: `celery beat` without a file, and without a traceback each time that the broker is away."""

import logging
from typing import Any

from celery.beat import ScheduleEntry, Scheduler, SchedulingError

from lace_site.alive import touch_alive_file
from lace_site.broker import due

log = logging.getLogger(__name__)


class Clock(Scheduler):  # type: ignore[misc]  # celery has no types
    """Beat's scheduler in memory: the schedule needs no state across restarts."""

    def tick(self, *args: Any, **options: Any) -> Any:
        """Enqueue what is due; returns the seconds until the next look."""
        touch_alive_file()
        return super().tick(*args, **options)

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Enqueue a task. One that the broker does not take is due again soon: say so once a minute."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if due(entry.name):
                log.warning("%s", error)
