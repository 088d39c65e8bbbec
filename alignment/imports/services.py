"""Kinds of imports that need several apps: rubrics with their articles, and verdicts."""

import json
import re
from pathlib import Path
from typing import Any

from common.import_watch import import_watch
from common.imports import ImportKind, Options, Target
from common.jsonl import Fields, Ignored, ImportResult, read_jsonl
from common.problems import FieldProblem, ImportProblem, shown
from evaluation.knowledge.services import criterion_articles_set
from evaluation.runs.services.verdicts import verdicts_import
from labeling.rubric.core.rubric import criterion_of
from labeling.rubric.services.rubric import rubric_import

_PLACE = re.compile(r"criteria\[(\d+)\]\.?(.*)")
_KEY = re.compile(r"[^a-z0-9]+")


def rubric_check(path: Path, options: Options) -> ImportResult:
    """Report the problems of each criterion of a file to the import's watch; write nothing."""
    watch, ignored = import_watch(), Ignored()
    seen: dict[str, int] = {}
    for number, line in read_jsonl(path):
        try:
            line, dimension = _with_dimension(line, options)
            key = criterion_of(Fields(line), {dimension}, ignored).key
            if seen.setdefault(key, number) != number:
                raise FieldProblem("key", f"{shown(key)} appears twice")
        except FieldProblem as problem:
            watch.refuse(ImportProblem(str(path), number, problem.field, problem.message))
    return ImportResult(len(seen), 0, 0, ignored.counts)


def rubric_lines_import(path: Path, options: Options) -> ImportResult:
    """Create or extend a rubric from a file with a criterion on each line.

    `rubric_name` of the options names it; `dimensions` may name the dimensions, which else are named by key.
    Raises ImportProblem; no data is written then.
    """
    criteria: list[dict[str, Any]] = []
    dimensions: dict[str, str] = {}
    for number, data in read_jsonl(path):
        try:
            line, dimension = _with_dimension(data, options)
        except FieldProblem as problem:
            raise ImportProblem(str(path), number, problem.field, problem.message) from None
        criteria.append(line)
        dimensions.setdefault(dimension, _name(dimension, data, options))
    document = {
        "name": options.get("rubric_name", ""),
        "dimensions": [{"key": key, "name": name} for key, name in dimensions.items()],
        "criteria": criteria,
    }
    # NB: under the name of the file, which the log and the versions of the criteria mention.
    target = path.parent.parent / "rubric" / path.name
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    try:
        return rubric_import(path=target, articles_set=criterion_articles_set)
    except ImportProblem as problem:
        place = _PLACE.fullmatch(problem.field)
        line_number = int(place[1]) + 1 if place else None
        field = place[2] if place else problem.field
        raise ImportProblem(str(path), line_number, field, problem.message) from None
    finally:
        target.unlink()


def _with_dimension(line: dict[str, Any], options: Options) -> tuple[dict[str, Any], str]:
    """Return a line with the key of its dimension, which a table may give by its name."""
    named = Fields(line).text("dimension", default="general").strip() or "general"
    keys = {str(one.get("key", "")) for one in options.get("dimensions", []) if isinstance(one, dict)}
    key = named if named in keys else _KEY.sub("_", named.lower()).strip("_")[:64] or "general"
    return line | {"dimension": key}, key


def _name(key: str, line: dict[str, Any], options: Options) -> str:
    for one in options.get("dimensions", []):
        if isinstance(one, dict) and one.get("key") == key and isinstance(one.get("name"), str):
            return str(one["name"])
    named = str(line.get("dimension") or "general").strip()
    return named if named != key else key.replace("_", " ").capitalize()


RUBRIC = ImportKind(
    key="rubric",
    label="Rubric",
    unit="criteria",
    about="The yes/no questions that raters and the judge answer, one row for each criterion.",
    targets=(
        Target("key", "Criterion key", also=("id", "criterion", "slug", "name"), required=True),
        Target("dimension", "Dimension", also=("group", "category", "section")),
        Target("tier", "Tier", also=("level", "type"), required=True),
        Target("question", "Question", also=("text", "prompt"), required=True),
        Target("definition", "Definition", also=("description", "meaning", "details"), required=True),
        Target("passes_when", "Passes when", "flag", also=("goodanswer", "pass")),
        Target("allow_na", "May be not applicable", "flag", also=("na", "notapplicable")),
        Target("critical", "Critical", "flag", also=("blocker",)),
        Target("evidence_on_fail", "Evidence for a failing answer", "flag", also=("evidence",)),
        Target("guideline", "Guideline", also=("guidance", "notes")),
        Target("true_example", "Example of True", also=("exampletrue",)),
        Target("false_example", "Example of False", also=("examplefalse",)),
        Target("knowledge", "Articles", "json", also=("articles",)),
        Target("state", "State"),
    ),
    store=rubric_lines_import,
    check=rubric_check,
    asks=frozenset({"rubric_name"}),
    derived={"labeling.consensus": {}},
    examples=(
        {
            "key": "polite",
            "dimension": "Manners",
            "tier": "simple",
            "question": "Was the bot polite in every message?",
            "definition": "True when no message of the bot is rude, mocking or dismissive.",
            "passes_when": True,
            "allow_na": False,
            "critical": False,
        },
    ),
)


def _verdicts_store(path: Path, options: Options) -> ImportResult:
    """Store the verdicts of a file on the set of the options, and count them as an import does."""
    done = verdicts_import(path=path, set_name=str(options.get("set", "")))
    new = sum(run.verdicts for run in done.runs if run.created)
    known = sum(run.verdicts for run in done.runs if not run.created)
    runs = ", ".join(f"run {run.id} by {run.judge}" for run in done.runs)
    return ImportResult(new, known, 0, done.ignored, notes=(runs,) if runs else ())


VERDICTS = ImportKind(
    key="verdicts",
    label="Verdicts",
    unit="verdicts",
    about="Answers of a judge that ran elsewhere: one finished run for each judge in the file.",
    targets=(
        Target("chat_id", "Chat id", also=("id", "chat", "conversationid", "sessionid"), required=True),
        Target("criterion", "Criterion", also=("metric", "evaluator", "key"), required=True),
        Target("judge", "Judge", also=("model", "grader"), required=True),
        Target("value", "Verdict", "answer", also=("answer", "verdict", "result", "score", "label")),
        Target("rationale", "Rationale", also=("reason", "reasoning", "explanation", "comment")),
        Target("p_true", "Probability of True", "number", also=("probability", "confidence", "p")),
        Target("state", "State"),
    ),
    store=_verdicts_store,
    asks=frozenset({"set", "judge"}),
    wide=True,
    derived={
        "evaluation.verdict": {},
        "evaluation.runchat": {},
        "evaluation.daycount": {},
        "evaluation.dayscore": {},
        "alignment.misalignment": {"revision": 0, "cause": "", "note": ""},
    },
    examples=(
        {"chat_id": "c-1", "criterion": "polite", "judge": "my-judge", "value": True, "rationale": "Turn 2."},
    ),
)
