"""Tests a model on twelve short chats with known answers, in every role."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

from common.commands import CommandExit, ExitCode, WorkbenchCommand
from evaluation.gateway.current import endpoint_id
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import judge_endpoint, model_of
from evaluation.model_tests.services import model_test_begin, model_test_run
from evaluation.model_tests.worker import STEPS

WORDS = {"pass": "pass", "set": "set", "fail": "FAIL", "info": "note"}


class Command(WorkbenchCommand):
    """Test a model of an endpoint, the one in the settings by default; exit code 0, or 1 if a check fails."""

    help = __doc__
    on_stop = "answers that came are saved"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", nargs="?", help="default: LACE_REASONING_MODEL")
        parser.add_argument("--endpoint", metavar="NAME", help="a connected endpoint")

    def handle(self, *args: Any, **options: Any) -> None:
        choice = JudgeSpec("direct", endpoint=endpoint_id(options["endpoint"]) if options["endpoint"] else "")
        endpoint = judge_endpoint(choice)
        usual = model_of("direct", choice=choice, endpoint=endpoint)
        row = model_test_begin(model=options["model"] or usual, by=None, endpoint=endpoint.id)
        self.note(f"{row.model} at {row.endpoint}")
        with tqdm(total=STEPS, unit="step", disable=None) as bar:
            result = model_test_run(row, on_step=bar.update)
        answer = {"model": row.model, "endpoint": row.endpoint, **result}
        self.answer(answer, result_text(result))
        if result["n_fail"]:
            raise CommandExit(ExitCode.NO)


def result_text(result: Mapping[str, Any]) -> str:
    """Return a line for each check, and one with the sums."""
    lines = [
        f"{WORDS[row['result']]:<5} {row['label']:<20} {row['observed']}"
        + (f"; {row['set']}" if row["set"] else "")
        for row in result["checks"]
    ]
    cost = "cost unknown" if result["cost_usd"] is None else f"${result['cost_usd']:.4f}"
    median = "–" if result["median_latency_ms"] is None else f"{result['median_latency_ms'] / 1000:.1f} s"
    tokens = f"{result['prompt_tokens']:,} + {result['completion_tokens']:,} tokens"
    return "\n".join([*lines, f"{result['calls']} calls, {tokens}, {cost}, median {median} a call"])
