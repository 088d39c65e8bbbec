"""Writes chats, labels, verdicts and more of a set in open formats, most of which the imports read."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from alignment.exports.core import EXPORTS, KINDS
from alignment.exports.queries.lines import ExportRun, export_runs, runs_to_export
from alignment.exports.services import ExportChoice, export_texts, export_write
from common.commands import WorkbenchCommand
from common.files import replaced_bytes, replaced_file
from common.problems import InputProblem, shown
from evaluation.models.runs import Run
from labeling.chats.queries import chat_set_named
from labeling.models.chats import ChatSet

BINARY = ("xlsx", "zip")


class Command(WorkbenchCommand):
    help = "Write chats, labels, verdicts, rubric or prompts of a chat set to stdout or to a file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=list(EXPORTS), help="what to write")
        parser.add_argument("--set", required=True, metavar="NAME", help="the chat set")
        parser.add_argument(
            "--run",
            type=int,
            metavar="ID",
            help="of verdicts and scores; default: the newest run of each judge",
        )
        parser.add_argument(
            "--format",
            choices=list(KINDS),
            help="default: jsonl, or the only one there is; csv and xlsx are for spreadsheets",
        )
        parser.add_argument("-o", dest="file", type=Path, metavar="FILE", help="default: stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        what, path = options["what"], options["file"]
        chat_set = chat_set_named(options["set"])
        if chat_set is None:
            raise InputProblem(f"--set: there is no chat set {shown(options['set'])}")
        of_runs = EXPORTS[what].runs
        if options["run"] is not None and not of_runs:
            named = " and ".join(name for name, one in EXPORTS.items() if one.runs)
            raise InputProblem(f"--run: only for {named}")
        kinds = EXPORTS[what].kinds
        kind = options["format"] or kinds[0]
        if kind not in kinds:
            raise InputProblem(f"--format: {what} cannot be exported as {kind}; use {' or '.join(kinds)}")
        if kind in BINARY and path is None:
            raise InputProblem(f"-o: name a file; {kind} is not written to the terminal")
        choice = ExportChoice(chat_set, self._runs(chat_set, options["run"]) if of_runs else ())
        if kind in BINARY:
            self._write_bytes(choice, what, kind, path)
        else:
            self._write_texts(choice, what, kind, path)

    def _write_texts(self, choice: ExportChoice, what: str, kind: str, path: Path | None) -> None:
        texts = export_texts(choice, what, kind)
        if path is None:
            for text in texts:
                self.stdout.write(text, ending="")
            return
        with replaced_file(path) as file:
            count = sum(bool(file.write(text)) for text in texts) - (kind == "csv")
        if kind == "json":
            self.answer({"file": str(path)}, f"Wrote {what} to {path}")
        else:
            self.answer({"exported": count, "file": str(path)}, f"Wrote {count:,} {what} to {path}")

    def _write_bytes(self, choice: ExportChoice, what: str, kind: str, path: Path) -> None:
        with replaced_bytes(path) as file:
            export_write(choice, what, kind, file)
        self.answer({"file": str(path), "bytes": path.stat().st_size}, f"Wrote {what} to {path}")

    def _runs(self, chat_set: ChatSet, run_id: int | None) -> list[ExportRun]:
        if run_id is not None:
            runs = list(Run.objects.select_related("judge").filter(pk=run_id, chat_set=chat_set))
            if not runs:
                raise InputProblem(f"--run: the chat set {shown(chat_set.name)} has no run {run_id}")
            return export_runs(runs)
        newest, older = runs_to_export(chat_set)
        for run in older:
            self.note(
                f"excluded run {run.pk}: {run.judge.name} has a newer run of this set (choose it with --run)"
            )
        return newest
