"""The roles that a judge asks: one table for engines, prompts, forms, pages and serialisation.

To add an advocate to the debate, add its row here and its texts (`KEY.md`, `brief_KEY.md`, `no_brief_KEY.md`)
to both editions in `evaluation/prompts/roles`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from evaluation.core.types import Criterion, Engine, Role, Side, Stance

Output = Literal["verdicts", "brief", "copy"]
Evidence = Literal["chat", "draft", "briefs", "rationale"]


@dataclass(frozen=True, slots=True)
class JudgeRole:
    """One role of a judge.

    Attributes
    ----------
    key : stored with calls and verdicts; also the name of the role's duty text.
    name : what pages show.
    engines : the engines that ask this role.
    output : `verdicts`, an advocate's `brief`, or the formatter's `copy` of conclusions.
    sees : what the role reads besides criteria and knowledge; the formatter reads a rationale and keys only.
    short_name : the name in flags; advocates only.
    argues : the answer that an advocate argues for; None for every other role.
    """

    key: Role
    name: str
    engines: tuple[Engine, ...]
    output: Output
    sees: tuple[Evidence, ...]
    short_name: str = ""
    argues: Stance | None = None

    @property
    def mark(self) -> str:
        """The word before every line of an advocate's brief."""
        return self.short_name.lower()


ROLES: tuple[JudgeRole, ...] = (
    JudgeRole("direct", "First pass", ("direct", "reflection"), "verdicts", ("chat",)),
    JudgeRole("reflector", "Reflection", ("reflection",), "verdicts", ("chat", "draft")),
    JudgeRole("customer", "Customer critic", ("debate",), "brief", ("chat",), "Critic", "failing"),
    JudgeRole("support", "Support defender", ("debate",), "brief", ("chat",), "Defender", "passing"),
    JudgeRole("judge", "Judge", ("debate",), "verdicts", ("chat", "briefs")),
    JudgeRole("formatter", "Formatter", get_args(Engine), "copy", ("rationale",)),
)
NAMES: Mapping[Role, str] = {role.key: role.name for role in ROLES}
ADVOCATES: tuple[JudgeRole, ...] = tuple(role for role in ROLES if role.output == "brief")
NEITHER = "neither"  # the side of a verdict that agrees with no advocate


def role_of(key: Role) -> JudgeRole:
    """Return the row of a role.

    Raises
    ------
    KeyError : no role has this key.

    Examples
    --------
    >>> role_of("support").name
    'Support defender'
    """
    return {role.key: role for role in ROLES}[key]


def engine_roles(engine: Engine) -> tuple[Role, ...]:
    """Return the keys of the roles that an engine asks, the formatter last.

    Examples
    --------
    >>> engine_roles("debate")
    ('customer', 'support', 'judge', 'formatter')
    """
    return tuple(role.key for role in ROLES if engine in role.engines)


def final_role(engine: Engine) -> Role:
    """Return the role whose answer decides: the last one of the engine that gives verdicts.

    Examples
    --------
    >>> [final_role(engine) for engine in ("direct", "reflection", "debate")]
    ['direct', 'reflector', 'judge']
    """
    return [role.key for role in ROLES if engine in role.engines and role.output == "verdicts"][-1]


def advocate_for(answer: bool, *, passes_when: bool) -> Role:
    """Return the key of the advocate who argues for an answer.

    Parameters
    ----------
    passes_when : the answer that is good for the chatbot.

    Examples
    --------
    >>> advocate_for(True, passes_when=True), advocate_for(True, passes_when=False)
    ('support', 'customer')
    """
    stance: Stance = "passing" if answer is passes_when else "failing"
    return next(role.key for role in ADVOCATES if role.argues == stance)


def side_of(value: bool | None, *, criterion: Criterion) -> Side:
    """Return the advocate who argued for this verdict, "neither" for not applicable.

    Examples
    --------
    >>> polite = Criterion("polite", "Polite?", "", "simple", True, True, "", ())
    >>> side_of(False, criterion=polite), side_of(None, criterion=polite)
    ('customer', 'neither')
    """
    return NEITHER if value is None else advocate_for(value, passes_when=criterion.passes_when)
