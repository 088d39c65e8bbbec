"""Lists all runs, newest last."""

from typing import Any

from common.commands import WorkbenchCommand
from evaluation.runs.queries.runs import run_json, run_list, run_rows


class Command(WorkbenchCommand):
    """List runs with id, set, judge, engine, state and counts."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        rows = run_rows(list(run_list().order_by("id")))
        lines = [
            f"{row.id:>5}  {row.standing:<26} {row.set:<24} {row.engine or row.kind:<11} "
            f"{row.verdicts:>7,} verdicts, {row.unparsed:,} unparsed  {row.judge}"
            for row in rows
        ]
        self.answer({"runs": [run_json(row) for row in rows]}, "\n".join(lines) or "no runs yet")
