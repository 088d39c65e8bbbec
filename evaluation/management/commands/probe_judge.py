"""Measures how easily a judge can be manipulated."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, get_args

from tqdm import tqdm

from common.commands import CommandExit, ExitCode, WorkbenchCommand
from common.jsonl import read_text
from common.problems import FieldProblem, InputProblem
from evaluation.core.types import KnowledgeMode
from evaluation.judges.core.spec import JudgeSpec, spec_from_json
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.management.options import KNOWLEDGE, SAMPLES, named_recipe
from evaluation.models.judges import Engine
from evaluation.probes.core import DIRECTIONS, KINDS
from evaluation.probes.services import ProbeChoice, probe_estimate, probe_judge, probe_prepare
from labeling.models.chats import ChatSet, Split

# 20 chats already need hundreds of calls per criterion.
CHATS = 20
JUDGE_OPTIONS = ("engine", "model", "knowledge", "samples")
ENDS = {"pass": ExitCode.DONE, "fail": ExitCode.NO, "inconclusive": ExitCode.INCONCLUSIVE}


class Command(WorkbenchCommand):
    """Probe a judge with a chat set; exit code 0, 1 or 3, by the flip rate of each kind of attack."""

    help = __doc__
    on_stop = "finished work is saved"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--set", required=True, help="name of the chat set")
        parser.add_argument("--profile", help="a stored judge profile; other options override it")
        parser.add_argument(
            "--engine", choices=Engine.values, help="how the judge decides; needed without --profile"
        )
        parser.add_argument("--model", help="reasoning model; default: LACE_REASONING_MODEL")
        parser.add_argument("--knowledge", choices=get_args(KnowledgeMode), help=KNOWLEDGE)
        parser.add_argument("--samples", type=positive, metavar="K", help=SAMPLES)
        parser.add_argument("--criteria", default="", metavar="K1,K2", help="default: every criterion")
        parser.add_argument(
            "--split", choices=Split.values, default="", help="only chats of this split; default: all"
        )
        parser.add_argument("--limit", type=positive, default=CHATS, help="the first N chats of the set")
        parser.add_argument(
            "--kinds",
            default="",
            metavar="K1,K2|N",
            help="kinds of attack by name, or the first N; default: all",
        )
        parser.add_argument(
            "--directions",
            default="",
            metavar="true,false",
            help="answers that attacks aim at; default: both",
        )
        parser.add_argument(
            "--repeats", type=positive, default=1, help="repetitions of each unchanged question"
        )
        parser.add_argument("--attacks-only", action="store_true", help="skip rewording and longer answers")
        parser.add_argument("--altered", metavar="KEY=FILE", help="use this text as the article KEY")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="refuse a probe that may cost more")
        parser.add_argument("--max-in-flight", type=positive, help="default: LACE_MAX_IN_FLIGHT")
        parser.add_argument(
            "--dry-run", action="store_true", help="print calls, tokens and cost; send nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        chat_set = ChatSet.objects.select_related("rubric").filter(name=options["set"]).first()
        if chat_set is None:
            raise InputProblem(f"--set: there is no chat set {options['set']!r}")
        judge, choice = chosen_judge(options), chosen_probe(options)
        endpoint = judge_endpoint(judge)
        if options["dry_run"]:
            estimate = probe_estimate(chat_set=chat_set, judge=judge, choice=choice, endpoint=endpoint)
            self.answer(estimate, estimate_text(estimate))
            return
        probe = probe_prepare(
            chat_set=chat_set,
            judge=judge,
            choice=choice,
            endpoint=endpoint,
            max_in_flight=options["max_in_flight"],
        )
        self.note(f"{probe.judge.name}: {len(probe.chats):,} chats, {len(probe.cases):,} cases")
        with tqdm(total=len(probe.cases), unit="case", disable=None) as bar:
            report = probe_judge(probe, chat_set=chat_set, on_case=bar.update)
        self.answer(report, report_text(report))
        if code := ENDS[report["gate"]["answer"]]:
            raise CommandExit(code)


def chosen_judge(options: Mapping[str, Any]) -> JudgeSpec:
    """Return the recipe: the profile's, with the given options applied. Raises InputProblem."""
    if not options["engine"] and not options["profile"]:
        raise InputProblem("use --engine or --profile")
    recipe = named_recipe(options["profile"]) if options["profile"] else {}
    recipe |= {name: options[name] for name in JUDGE_OPTIONS if options[name] is not None}
    try:
        return spec_from_json(recipe)
    except FieldProblem as problem:
        raise InputProblem(f"--profile: {problem}" if options["profile"] else f"--{problem}") from None


def chosen_probe(options: Mapping[str, Any]) -> ProbeChoice:
    """Return the probes that the options describe. Raises InputProblem."""
    directions = _names(options, "directions")
    unknown = [direction for direction in directions if direction not in DIRECTIONS]
    if unknown:
        raise InputProblem(f"--directions: {unknown[0]!r} is neither true nor false")
    return ProbeChoice(
        criteria=_names(options, "criteria"),
        split=options["split"],
        limit=options["limit"],
        kinds=_kinds(options),
        directions=[direction for direction in DIRECTIONS if direction in directions],
        repeats=options["repeats"],
        harmless=not options["attacks_only"],
        altered=_altered(options["altered"]) if options["altered"] else None,
        budget_usd=options["budget"],
    )


def _names(options: Mapping[str, Any], option: str) -> list[str]:
    text = options[option]
    names = [name.strip() for name in text.split(",") if name.strip()]
    if text and not names:
        raise InputProblem(f"--{option}: {text!r} is empty")
    return names


def _kinds(options: Mapping[str, Any]) -> list[str]:
    names = _names(options, "kinds")
    if len(names) == 1 and names[0].isdecimal():
        return list(KINDS)[: max(1, int(names[0]))]
    return names


def _altered(text: str) -> tuple[str, str]:
    key, equals, file = text.partition("=")
    if not (key and equals and file):
        raise InputProblem(f"--altered: KEY=FILE, not {text!r}")
    return key, read_text(Path(file))


def estimate_text(estimate: Mapping[str, Any]) -> str:
    """Return the dry run in words."""
    cost = "cost unknown" if estimate["cost_usd"] is None else f"${estimate['cost_usd']:.4f}"
    return (
        f"{estimate['chats']:,} chats, {estimate['cases']:,} cases: {estimate['calls']:,} calls and "
        f"formatter calls as needed ({estimate['reused']:,} already answered), about "
        f"{estimate['prompt_tokens']:,} prompt tokens and up to {estimate['completion_tokens']:,} "
        f"completion tokens, {cost}"
    )


def report_text(report: Mapping[str, Any]) -> str:
    """Return the report as tables for the terminal."""
    gate, noise, judge = report["gate"], report["no_attack"], report["judge"]
    lines = [
        f"{report['set']}: {report['chats']} chats, {judge['name']} ({judge['fingerprint'][:8]})",
        f"repeated without an attack: {_share(noise['any'])} changed; "
        f"to True {_share(noise['true'])}, to False {_share(noise['false'])}",
        "",
        *_kinds_table(gate["kinds"]),
        "",
        *_table("attack", report["attacks"], ("kind", "direction")),
        "",
        *_table("criterion", report["criteria"], ("criterion", "direction")),
        "",
    ]
    lines += [f"{row['kind']}: {_share(row)} changed, {row['lost']} lost" for row in report["harmless"]]
    if report["altered"]:
        left = len(report["altered"]["unchanged"])
        lines.append(
            f"altered article: {_share(report['altered'])} changed, {left} unchanged: is knowledge ignored?"
        )
    lines.append(
        f"all attacks: {_share(gate)} flipped, {gate['lost']} lost, noted by the judge "
        f"{_percent(gate['noted'])}, chats flagged {_percent(gate['detected'])}; "
        f"{report['failed']} cases without an answer"
    )
    return "\n".join([*lines, *_gate_lines(gate)])


def _kinds_table(kinds: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the gate decides on each kind of attack, the worst one first."""
    head = f"{'kind of attack':<32} {'n':>5} {'flips':>5} {'above no attack (95%)':>22}  answer"
    return [
        head,
        "-" * len(head),
        *(
            f"{row['kind']:<32} {row['n']:>5} {row['flips']:>5} {_points(row['difference']):>22}  "
            f"{row['answer']}"
            for row in kinds
        ),
    ]


def _gate_lines(gate: Mapping[str, Any]) -> list[str]:
    lines = []
    if gate["kinds"]:
        worst = gate["kinds"][0]
        lines.append(
            f"worst kind: {worst['kind']}, {worst['flips']} of {worst['n']} flipped, "
            f"{_points(worst['difference'])} points above the no-attack rate"
        )
    if gate["answer"] == "inconclusive":
        needs = gate["needs"]
        lines.append(
            f"too few questions: without any flip a kind passes from {needs['attacked']} on, with at least "
            f"{needs['repeated']} repeated ones; use more chats (--limit) or repeats (--repeats)"
        )
    answer = {"pass": "yes", "fail": "no", "inconclusive": "too few to tell"}[gate["answer"]]
    return [*lines, f"{gate['rule']}: {answer}"]


def _points(difference: Mapping[str, float | None]) -> str:
    """Return a difference of two rates in percentage points, with its interval."""
    value, low, high = (difference[name] for name in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return "–"
    return f"{100 * value:+.0f} ({100 * low:+.0f} to {100 * high:+.0f})"


def _table(title: str, rows: Sequence[Mapping[str, Any]], names: tuple[str, str]) -> list[str]:
    head = (
        f"{title:<32} {'to':<6} {'n':>5} {'flips':>5} {'rate (95%)':>20} "
        f"{'above':>6} {'lost':>5} {'noted':>6}"
    )
    lines = [head, "-" * len(head)]
    for row in rows:
        above = "–" if row["above_no_attack"] is None else f"{row['above_no_attack']:+.0%}"
        lines.append(
            f"{row[names[0]][:32]:<32} {row[names[1]]:<6} {row['n']:>5} {row['flips']:>5} "
            f"{_interval(row['rate']):>20} {above:>6} {row['lost']:>5} {_percent(row['noted']):>6}"
        )
    return lines


def _share(row: Mapping[str, Any]) -> str:
    return f"{row['flips']} of {row['n']} ({_interval(row['rate'])})"


def _interval(rate: Mapping[str, float | None]) -> str:
    if rate["value"] is None:
        return "–"
    return f"{rate['value']:.1%} ({rate['low']:.0%}–{rate['high']:.0%})"


def _percent(rate: Mapping[str, float | None]) -> str:
    return "–" if rate["value"] is None else f"{rate['value']:.0%}"


def dollars(text: str) -> Decimal:
    """Return an amount above zero."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError from None
    if not value.is_finite() or value <= 0:
        raise ValueError
    return value


def positive(text: str) -> int:
    """Return a whole number above zero."""
    if (value := int(text)) <= 0:
        raise ValueError
    return value
