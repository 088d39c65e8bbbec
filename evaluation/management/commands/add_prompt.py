"""Adds a version of a criterion's prompt."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from common.commands import WorkbenchCommand
from common.jsonl import Ignored
from common.problems import InputProblem, shown
from evaluation.management.options import account
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.core.lint import Level
from evaluation.prompts.services.example_files import ExampleFile, examples_read, refused_in_file
from evaluation.prompts.services.examples import PromptRefused, prompt_version_add
from evaluation.prompts.services.lint import prompt_lint
from evaluation.prompts.services.prompt_files import prompt_read
from evaluation.prompts.services.versions import is_measured, prompt_promote
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit_command


class Command(WorkbenchCommand):
    help = "Add a draft version of a criterion's prompt, optionally with worked examples."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--criterion", required=True, metavar="KEY", help="the criterion")
        parser.add_argument("--prompt", required=True, type=Path, metavar="FILE.md", help="the text")
        parser.add_argument(
            "--examples", type=Path, metavar="FILE.jsonl", help="0 to 4 excerpts of train chats"
        )
        parser.add_argument("--reason", default="", help="why this version")
        parser.add_argument(
            "--promote",
            action="store_true",
            help="make it the champion at once, without a gate; needs --reason, "
            "and --by once the criterion has labels or verdicts",
        )
        parser.add_argument(
            "--by", metavar="NAME", help="account that adds it; to promote, one that may release prompts"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["promote"] and not options["reason"].strip():
            raise InputProblem("--promote needs a --reason")
        criterion = Criterion.objects.filter(key=options["criterion"]).first()
        if criterion is None:
            raise InputProblem(f"--criterion: there is no criterion {shown(options['criterion'])}")
        by = account(options["by"])
        if options["promote"]:
            _check_promoter(criterion, by)
        with transaction.atomic():
            version = self._add(criterion, options, by)
            if options["promote"]:
                prompt_promote(version=version, reason=options["reason"], by=by)
            detail = {"criterion": criterion.key, "version": version.number, "promoted": options["promote"]}
            audit_command(what="prompt", path=options["prompt"], obj=version, **detail)
        state = "now the champion" if options["promote"] else "not promoted"
        self.answer(detail, f"{criterion.key}: version {version.number}, {state}")

    def _add(self, criterion: Criterion, options: dict[str, Any], by: User | None) -> PromptVersion:
        """Add the version. Raises InputProblem if a prompt with errors would become the champion."""
        prompt, examples, reason = options["prompt"], options["examples"], options["reason"]
        text = prompt_read(prompt, criterion=criterion).text
        worked = self._examples(examples) if examples else None
        choices = worked.choices if worked else ()
        try:
            version = prompt_version_add(
                criterion=criterion, text=text, examples=choices, reason=reason, author=by
            )
        except PromptRefused as problem:
            raise refused_in_file(problem, prompt=prompt, examples=worked) from None
        findings = prompt_lint(criterion=criterion, text=text, examples=choices)
        errors = [finding.text for finding in findings if finding.level is Level.ERROR]
        if errors and options["promote"]:
            raise InputProblem(f"{prompt}: not promoted: {'; '.join(errors)}")
        for finding in findings:
            self.note(f"{prompt}: {finding.line}")
        return version

    def _examples(self, path: Path) -> ExampleFile:
        ignored = Ignored()
        examples = examples_read(path, ignored=ignored)
        self.note_ignored(ignored.counts)
        return examples


def _check_promoter(criterion: Criterion, by: User | None) -> None:
    """Raise InputProblem unless an override of the gate is recorded with an account that may release."""
    if by is None and is_measured(criterion):
        raise InputProblem("--promote overrides the gate here: name an account that may release with --by")
    if by is not None and not by.is_allowed("release_prompts"):
        raise InputProblem(f"--by: {shown(by.username)} may not release prompts")
