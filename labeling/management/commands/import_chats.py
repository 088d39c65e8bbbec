"""Import chats."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import ImportCommand
from labeling.chats.services.chat_sets import KINDS
from labeling.chats.services.chats import chats_import


class Command(ImportCommand):
    help = "Add the chats of a JSON Lines file; the same file again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
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
        result = chats_import(
            path=options["file"],
            set_name=options["set"],
            rubric_name=options["rubric"],
            split=options["split"],
            cluster_key=options["cluster_key"],
            kind=options["kind"],
        )
        self.answer_import(result, "chats")
