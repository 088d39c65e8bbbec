"""Exports or deletes the data about one chat, one account, or one rater without an account."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from alignment.personal_data.queries.page import chat_data, person_data
from alignment.personal_data.queries.rows import (
    Person,
    chat_rows,
    person_of,
    person_rows,
    personal_lines,
)
from alignment.personal_data.services.chats import chat_erase, chat_exported
from alignment.personal_data.services.people import person_erase, person_exported
from common.commands import WorkbenchCommand
from common.files import json_line, replaced_file
from common.problems import InputProblem, shown
from labeling.models.chats import Chat
from labeling.models.people import Rater, User


class Command(WorkbenchCommand):
    """`delete` needs --yes; without it the command only says what it would delete."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("act", choices=("export", "delete"), help="what to do")
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--chat", metavar="ID", help="id of the chat")
        whose.add_argument("--user", metavar="NAME", help="user name of an account, and its rater")
        whose.add_argument("--rater", metavar="NAME", help="name of a rater")
        parser.add_argument("--source", default="", help="system that sent the chat; default: files")
        parser.add_argument("-o", "--output", metavar="FILE", help="file of the export (JSON Lines)")
        parser.add_argument("--yes", action="store_true", help="delete")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        found = _chat(options) if options["chat"] else _person(options)
        if act == "export":
            self._export(found, options["output"])
        else:
            self._delete(found, sure=options["yes"])

    def _export(self, found: Chat | Person, output: str | None) -> None:
        if not output:
            raise InputProblem("name a file with -o: the export holds personal data")
        if isinstance(found, Chat):
            lines = personal_lines(chat_rows(found), chat=found.external_id, source=found.source)
            chat_exported(chat=found, by=None)
        else:
            lines = personal_lines(person_rows(found), person=found.title)
            person_exported(person=found, by=None)
        count = 0
        with replaced_file(Path(output)) as file:
            for line in lines:
                file.write(json_line(line) + "\n")
                count += 1
        Path(output).chmod(0o600)
        self.answer({"file": output, "rows": count - 1}, f"{count - 1:,} rows in {output}")

    def _delete(self, found: Chat | Person, *, sure: bool) -> None:
        if not sure:
            data = chat_data(found) if isinstance(found, Chat) else person_data(found)
            stored = "; ".join(f"{count:,} {words}" for count, words in data.counts) or "nothing beside it"
            raise InputProblem(f"nothing was deleted: add --yes. Stored: {stored}")
        if isinstance(found, Chat):
            left = chat_erase(chat=found, by=None)
            kept = {"labels": left.labels, "verdicts": left.verdicts}
            self.answer(kept, f"text deleted; kept: {left.labels:,} labels, {left.verdicts:,} verdicts")
            return
        done = person_erase(person=found, by=None)
        words = f"deleted; {done.labels:,} labels stay under {done.pseudonym}"
        self.answer({"pseudonym": done.pseudonym, "labels": done.labels}, words)


def _chat(options: dict[str, Any]) -> Chat:
    chat = Chat.objects.filter(external_id=options["chat"], source=options["source"]).first()
    if chat is None:
        source = f" of source {shown(options['source'])}" if options["source"] else ""
        raise InputProblem(f"--chat: there is no chat {shown(options['chat'])}{source}")
    return chat


def _person(options: dict[str, Any]) -> Person:
    if options["user"]:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise InputProblem(f"--user: there is no account {shown(options['user'])}")
        return person_of(user=user)
    rater = Rater.objects.select_related("user").filter(name=options["rater"]).first()
    if rater is None:
        raise InputProblem(f"--rater: there is no rater {shown(options['rater'])}")
    return person_of(rater=rater)
