"""Commands for CI jobs: `python -m lace_client {chats,run,report,gate}`."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lace_client.errors import InvalidRequest, NotAllowed, NotFinished, WorkbenchError
from lace_client.generated.models.regression_output import RegressionOutput
from lace_client.reports import Report
from lace_client.workbench import PromptTest, Workbench

# The exit codes of the workbench's own commands.
PASS, FAIL, USAGE, INCONCLUSIVE, OUTSIDE = 0, 1, 2, 3, 4
_EXIT = {"pass": PASS, "fail": FAIL, "inconclusive": INCONCLUSIVE}
_HEAD = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_PROBLEMS_SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Execute a command and exit: 0 done or pass, 1 fail, 2 wrong input, 3 inconclusive, 4 no answer."""
    chosen = _parser().parse_args(arguments)
    try:
        with Workbench.from_environment(poll_seconds=chosen.poll) as workbench:
            code: int = chosen.command(workbench, chosen)
    except NotFinished as problem:
        code = _problem(problem, INCONCLUSIVE)
    except (InvalidRequest, NotAllowed) as problem:
        code = _problem(problem, USAGE)
    except WorkbenchError as problem:
        code = _problem(problem, OUTSIDE)
    except (OSError, ValueError) as problem:
        code = _problem(problem, USAGE)
    sys.exit(code)


def chats(workbench: Workbench, chosen: argparse.Namespace) -> int:
    """Send the chats of a file; exit 2 if the workbench refused some."""
    sent = workbench.send_chats(
        _lines(chosen.file),
        source=chosen.source,
        into=chosen.set,
        rubric=chosen.rubric,
        split=chosen.split,
    )
    into = f", {sent.added_to_set} added to {chosen.set}" if chosen.set else ""
    counts = f"{sent.created} created, {sent.updated} updated, {sent.unchanged} unchanged"
    _say(f"{sent.received} chats: {counts}, {sent.refused} refused{into}")
    for one in sent.problems[:_PROBLEMS_SHOWN]:
        print(f"{chosen.file}: chat {one.id!r}: {one.field} {one.message}", file=sys.stderr)
    return USAGE if sent.problems else PASS


def run(workbench: Workbench, chosen: argparse.Namespace) -> int:
    """Start a run, wait and print its report."""
    options = _given(chosen, "profile", "engine", "split", "budget_usd")
    run_id = workbench.start_run(chosen.set, **options)
    _say(f"Run {run_id} started")
    row = workbench.wait_for_run(run_id, timeout=chosen.timeout)
    _say(f"Run {run_id}: {row.state_label}, {row.units_done} of {row.units} units")
    code = _report(workbench.report(run_id, split=chosen.split), chosen)
    return OUTSIDE if row.units_failed and code == PASS else code


def report(workbench: Workbench, chosen: argparse.Namespace) -> int:
    """Print the report of a run that is done."""
    return _report(workbench.report(chosen.run, split=chosen.split), chosen)


def gate(workbench: Workbench, chosen: argparse.Namespace) -> int:
    """Test prompts against their champions; exit 0 if all pass, 1 if one fails, 3 if one is undecided."""
    options = _given(chosen, "profile", "budget_usd")
    tests = [_start(workbench, path, chosen, options) for path in chosen.prompts]
    codes = [_decided(workbench, test, chosen.timeout) for test in tests]
    return FAIL if FAIL in codes else max(codes, default=PASS)


def _start(workbench: Workbench, path: Path, chosen: argparse.Namespace, options: Any) -> PromptTest:
    """Start the test of a file KEY.md, with the worked examples of KEY.examples.jsonl beside it."""
    examples = path.with_suffix(".examples.jsonl")
    return workbench.test_prompt(
        path.stem,
        _HEAD.sub("", path.read_text(encoding="utf-8")),
        chat_set=chosen.set,
        split=chosen.split or "dev",
        reason=chosen.reason,
        examples=list(_lines(examples)) if examples.exists() else (),
        **options,
    )


def _decided(workbench: Workbench, started: PromptTest, timeout: float) -> int:
    name = f"{started.criterion} version {started.version}"
    if started.test is None:
        _say(f"PASS {name}: this text is the champion")
        return PASS
    _say(f"Regression test {started.test} of {name} started")
    decided: RegressionOutput = workbench.wait_for_test(started.test, timeout=timeout)
    result = decided.gate or "inconclusive"
    _say(f"{result.upper()} {name}: {'; '.join(decided.reasons)}")
    for caution in decided.cautions:
        _say(f"  caution: {caution}")
    return _EXIT[result]


def _report(found: Report, chosen: argparse.Namespace) -> int:
    """Print a report; with --require-alignment exit 1 for a criterion that is not aligned."""
    if chosen.json:
        _say(json.dumps(found.document, ensure_ascii=False))
    else:
        _say(f"{found.chats} chats")
        for row in found.criteria:
            _say(f"{row.key}: {row.status}, balanced accuracy {row.balanced_accuracy}, n {row.n}")
    if not chosen.require_alignment:
        return PASS
    for row in (*found.not_aligned, *found.undecided):
        print(f"{row.key}: {row.status}: {'; '.join(row.reasons)}", file=sys.stderr)
    return FAIL if found.not_aligned else INCONCLUSIVE if found.undecided else PASS


def _lines(path: Path) -> Iterator[Any]:
    """Yield the objects of a JSONL file. Raises ValueError with its line."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    found = json.loads(line)
                except ValueError as problem:
                    raise ValueError(f"{path} line {number}: {problem}") from problem
                if not isinstance(found, dict):
                    raise ValueError(f"{path} line {number}: is no JSON object")
                yield found


def _given(chosen: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(chosen, name, None))}


def _say(text: str) -> None:
    print(text, flush=True)


def _problem(problem: Exception, code: int) -> int:
    print(f"error: {problem}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="lace_client", description="Reads LACE_URL and LACE_TOKEN from the environment."
    )
    whole.add_argument("--poll", type=float, default=5.0, help="seconds between two looks at a run")
    commands = whole.add_subparsers(required=True)

    one = _command(commands, "chats", chats, "send the chats of a JSONL file")
    one.add_argument("file", type=Path)
    one.add_argument("--source", default="ci", help="names the system that the chats are from")
    one.add_argument("--set", default="", help="chat set to add them to; created if it is new")
    one.add_argument("--rubric", default="", help="of a new set")
    one.add_argument("--split", default="dev", choices=["dev", "train"])

    one = _command(commands, "run", run, "start a run, wait, print its report")
    one.add_argument("--set", required=True)
    one.add_argument("--profile", default="", help="judge profile")
    one.add_argument("--engine", default="", help="direct, reflection, debate or auto")
    _report_options(one)
    _waiting_options(one)

    one = _command(commands, "report", report, "print the alignment report of a run")
    one.add_argument("run", type=int)
    _report_options(one)

    one = _command(commands, "gate", gate, "test prompt files KEY.md against their champions")
    one.add_argument("prompts", type=Path, nargs="+", metavar="KEY.md")
    one.add_argument("--set", required=True, help="labelled chat set")
    one.add_argument("--split", default="dev", choices=["dev", "holdout"])
    one.add_argument("--profile", default="", help="judge profile; default: the workspace's")
    one.add_argument("--reason", default="Tested in CI", help="what is new, shown with the version")
    _waiting_options(one)
    return whole


def _command(commands: Any, name: str, act: Any, words: str) -> argparse.ArgumentParser:
    one: argparse.ArgumentParser = commands.add_parser(name, help=words, description=words)
    one.set_defaults(command=act)
    return one


def _report_options(one: argparse.ArgumentParser) -> None:
    one.add_argument("--split", default="", choices=["", "train", "dev", "holdout"])
    one.add_argument("--json", action="store_true", help="print the whole document")
    one.add_argument(
        "--require-alignment",
        action="store_true",
        help="exit 1 if the judge is not aligned on a criterion, 3 if there is too little evidence",
    )


def _waiting_options(one: argparse.ArgumentParser) -> None:
    one.add_argument("--budget-usd", dest="budget_usd", help="budget of each run")
    one.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait")
