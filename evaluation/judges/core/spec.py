"""A judge's recipe as a user chooses it: stored in profiles, taken by commands, edited on pages."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args, get_type_hints

from common.problems import FieldProblem, shown
from evaluation.core.grouping import Grouping
from evaluation.core.types import Ablation, KnowledgeMode, Role, RoleIn, WindowRule, Windows
from evaluation.engines.core.roles import NAMES

EngineName = Literal["direct", "reflection", "debate", "auto"]
# The tiers whose criteria engine `auto` debates; the others go direct.
AutoDebates = Literal["context", "context_subjective"]
LayoutChoice = Literal["auto", "criteria_first", "chat_first"]

MOST_SAMPLES = 9
LARGEST_NUMBER = 1_000_000
LONGEST_NAME = 200
# Settings that each role can have of its own.
BY_ROLE = ("endpoints", "models", "temperatures", "efforts")


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A judge's recipe; an empty model means the one in the settings.

    Attributes
    ----------
    auto_debates : the tiers that engine `auto` debates.
    endpoint : the endpoint's id; "" for the server's own.
    endpoints, models, temperatures, efforts : by role; roles that are missing keep the default.
    samples : answers to each question; their majority decides.
    passage_tokens : budget for retrieved passages in a call (knowledge mode retrieved).
    embedding_model : ranks retrieved passages by meaning as well as by words; "" by words only.
    windows : how long chats are split; None gives them no verdict.
    logprobs : request token probabilities.
    ablation : changes a debate to measure the effect of its briefs.
    """

    engine: EngineName
    auto_debates: AutoDebates = "context_subjective"
    endpoint: str = ""
    model: str = ""
    formatter: str = ""
    endpoints: Mapping[Role, str] = field(default_factory=dict)
    models: Mapping[Role, str] = field(default_factory=dict)
    temperatures: Mapping[Role, float] = field(default_factory=dict)
    efforts: Mapping[Role, str] = field(default_factory=dict)
    grouping: Grouping = "auto"
    knowledge: KnowledgeMode = "static"
    passage_tokens: int = 1500
    embedding_model: str = ""
    samples: int = 1
    role_in: RoleIn = "user"
    layout: LayoutChoice = "auto"
    windows: Windows | None = None
    logprobs: bool = False
    ablation: Ablation = ""


def spec_to_json(choice: JudgeSpec) -> dict[str, Any]:
    """Return the recipe as JSON; `choice_read` reads it back.

    Examples
    --------
    >>> spec_from_json(spec_to_json(JudgeSpec("debate", samples=3))).samples
    3
    """
    return asdict(choice)


def spec_from_json(data: Mapping[str, Any]) -> JudgeSpec:
    """Return a recipe from JSON.

    Raises
    ------
    FieldProblem : an unknown setting, a missing engine, or a value that is not allowed.
    """
    names = {entry.name for entry in fields(JudgeSpec)}
    for name in data:
        if name not in names:
            raise FieldProblem(str(name), "is not a setting of a judge")
    if "engine" not in data:
        raise FieldProblem("engine", "is missing")
    return JudgeSpec(**{name: _value(name, value) for name, value in data.items()})


def _value(name: str, value: Any) -> Any:
    if name in _WORDS:
        return _word(name, value, _WORDS[name])
    if name in BY_ROLE:
        return _by_role(name, value)
    if name in ("samples", "passage_tokens"):
        return _whole(name, value, most=MOST_SAMPLES if name == "samples" else LARGEST_NUMBER)
    if name == "windows":
        return None if value is None else _windows(value)
    if name == "logprobs":
        if not isinstance(value, bool):
            raise FieldProblem(name, f"must be true or false, not {shown(value)}")
        return value
    return _name(name, value)


def _word(name: str, value: Any, words: tuple[Any, ...]) -> Any:
    if value not in words:
        known = ", ".join(str(word) or "none" for word in words)
        raise FieldProblem(name, f"must be one of {known}, not {shown(value)}")
    return value


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_NAME or "\0" in value:
        raise FieldProblem(name, f"must be a text of at most {LONGEST_NAME} characters")
    return value.strip()


def _whole(name: str, value: Any, *, most: int, least: int = 1) -> int:
    if type(value) is not int or not least <= value <= most:
        raise FieldProblem(name, f"must be a whole number from {least} to {most:,}, not {shown(value)}")
    return value


def _by_role(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise FieldProblem(name, "must be an object of roles")
    read = {}
    for role, entry in value.items():
        where = f"{name}.{role}"
        _word(where, role, tuple(NAMES))
        read[role] = _temperature(where, entry) if name == "temperatures" else _name(where, entry)
    return read


def _temperature(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
        raise FieldProblem(name, f"must be a number from 0 to 2, not {shown(value)}")
    return float(value)


def _windows(value: Any) -> Windows:
    if not isinstance(value, Mapping) or "tokens" not in value:
        raise FieldProblem("windows", "needs tokens")
    for name in value:
        if name not in ("tokens", "overlap", "rule"):
            raise FieldProblem(f"windows.{name}", "is not a setting of windows")
    return Windows(
        tokens=_whole("windows.tokens", value["tokens"], most=LARGEST_NUMBER),
        overlap=_whole("windows.overlap", value.get("overlap", 4), most=1000, least=0),
        rule=_word("windows.rule", value.get("rule", "any_fails"), get_args(WindowRule)),
    )


_WORDS: dict[str, tuple[Any, ...]] = {
    name: get_args(get_type_hints(JudgeSpec)[name])
    for name in ("engine", "auto_debates", "grouping", "knowledge", "role_in", "layout", "ablation")
}
