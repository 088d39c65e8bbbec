"""Import chats."""

from functools import cache
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import CommandParser

from common.commands import ImportCommand
from common.problems import InputProblem
from labeling.chats.services.chat_sets import KINDS
from labeling.chats.services.chats import chats_import
from labeling.ingest.core.collection import Level
from labeling.ingest.queries import intake_now
from labeling.ingest.services.kinds import TRACES, traces_import


class Command(ImportCommand):
    help = "Add the chats of a file; the same file again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="chats, in the format of --format")
        parser.add_argument(
            "--format",
            choices=("lines", *TRACES),
            default="lines",
            help="lines: JSON Lines of chats (default); langfuse: its exports; otel: GenAI spans (OTLP)",
        )
        self._add_trace_arguments(parser)
        self._add_set_arguments(parser)

    def _add_trace_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--level",
            choices=get_args(Level),
            default="calls",
            help="of traces: read the calls of models (default), or the input and output of whole traces",
        )
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="CALL",
            help="of traces: read calls of this name only",
        )
        parser.add_argument(
            "--without",
            action="append",
            default=[],
            metavar="CALL",
            help="of traces: leave out calls of this name",
        )

    def _add_set_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--set", default="", metavar="NAME", help="add the chats to this set; create it if new"
        )
        parser.add_argument(
            "--rubric", default="", metavar="NAME", help="rubric of a new set; required with several rubrics"
        )
        parser.add_argument(
            "--kind",
            choices=KINDS,
            default="",
            help="kind of a new set: curated (default), gold (known answers) or calibration (first round)",
        )
        parser.add_argument(
            "--split",
            default="",
            metavar="NAME|SHARES",
            help="train, dev (default), holdout, or shares: train=20,dev=40,holdout=40; a line's split wins",
        )
        parser.add_argument(
            "--cluster-key",
            default="",
            metavar="KEY",
            help="metadata key that names chats that belong together, such as those of one customer",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        intake = cache(intake_now)  # read with the first chat: a wrong file is named first
        target = {
            "set_name": options["set"],
            "rubric_name": options["rubric"],
            "split": options["split"],
            "cluster_key": options["cluster_key"],
            "kind": options["kind"],
            "prepare": lambda chat: intake().prepared(chat),
        }
        if options["format"] == "lines":
            if options["only"] or options["without"] or options["level"] != "calls":
                raise InputProblem("--level, --only and --without need --format langfuse or otel")
            result = chats_import(path=options["file"], **target)
        else:
            result = traces_import(
                path=options["file"],
                form=options["format"],
                level=options["level"],
                names=options["only"],
                without=options["without"],
                **target,
            )
        self.answer_import(result, "chats")
