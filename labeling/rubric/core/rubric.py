"""A rubric from a file: validated, with defaults."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field

from common.jsonl import KEY_LIMIT, NAME_LIMIT, Fields, Ignored
from common.problems import FieldProblem, shown

TIERS = ("simple", "context", "subjective")
STATES = ("active", "retired")
CRITERION_KEY = re.compile(r"[a-z][a-z0-9_]*")
CRITERION_KEY_LIMIT = 64
# Words that a question begins with or that every question holds: a key leaves them out.
FILLERS = frozenset(
    (
        *(
            "a",
            "an",
            "and",
            "any",
            "are",
            "at",
            "be",
            "bot",
            "chat",
            "chatbot",
            "customer",
            "did",
            "do",
            "does",
        ),
        *(
            "every",
            "for",
            "from",
            "had",
            "has",
            "have",
            "how",
            "in",
            "is",
            "it",
            "its",
            "of",
            "on",
            "one",
            "or",
        ),
        *("s", "the", "there", "this", "to", "was", "were", "what", "when", "which", "with"),
    )
)
SUGGESTED_KEY_LIMIT = 40
WORDS_FOR_RATERS = ("guideline", "true_example", "false_example")
RUBRIC_FIELDS = frozenset(("name", "dimensions", "criteria"))
DIMENSION_FIELDS = frozenset(("key", "name"))
CRITERION_FIELDS = frozenset(
    (
        *("key", "dimension", "tier", "question", "definition"),
        *("passes_when", "allow_na", "critical", "evidence_on_fail", "knowledge", "state"),
        *WORDS_FOR_RATERS,
    )
)


@dataclass(frozen=True, slots=True)
class DimensionSpec:
    """A dimension of a rubric file."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class CriterionSpec:
    """A criterion of a rubric file; `knowledge` None = by tier: all articles for context, else none."""

    key: str
    dimension: str
    tier: str
    question: str
    definition: str
    passes_when: bool
    allow_na: bool
    critical: bool
    knowledge: tuple[str, ...] | None
    state: str = ""  # '' keeps the stored value; a new criterion is active
    # Whether a failing answer needs evidence. None keeps the stored value; a new criterion does not.
    evidence_on_fail: bool | None = None
    # Further texts for raters, by field; an absent field keeps the stored text.
    words_for_raters: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads_all_articles(self) -> bool:
        """Whether the criterion reads all articles, later ones included."""
        return self.knowledge is None and self.tier == "context"


@dataclass(frozen=True, slots=True)
class CriterionSettings:
    """What a criterion has beside its texts; `knowledge` are the keys of the articles that it lists."""

    key: str
    dimension: str
    tier: str
    critical: bool
    evidence_on_fail: bool
    all_articles: bool
    knowledge: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Return a short hash: a form keeps it, to notice a change by somebody else."""
        canonical = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class RubricSpec:
    """A rubric file."""

    name: str
    dimensions: tuple[DimensionSpec, ...]
    criteria: tuple[CriterionSpec, ...]


def rubric_of(fields: Fields, ignored: Ignored | None = None) -> RubricSpec:
    """
    Validate a rubric file.

    Raises
    ------
    FieldProblem
        a missing or ill-typed field, an invalid or repeated key, a dimension that is not listed.

    Examples
    --------
    >>> rubric_of(Fields({"name": "R", "dimensions": [], "criteria": []})).name
    'R'
    """
    ignored = ignored or Ignored()
    dimensions = tuple(
        _dimension(Fields(item, f"dimensions[{n}]"), ignored)
        for n, item in enumerate(fields.items("dimensions"))
    )
    check_once("dimensions", [dimension.key for dimension in dimensions])
    keys = {dimension.key for dimension in dimensions}
    criteria = tuple(
        criterion_of(Fields(item, f"criteria[{n}]"), keys, ignored)
        for n, item in enumerate(fields.items("criteria"))
    )
    check_once("criteria", [criterion.key for criterion in criteria])
    ignored.note(fields.unknown(RUBRIC_FIELDS))
    return RubricSpec(fields.text("name", limit=NAME_LIMIT, blank=False), dimensions, criteria)


def suggested_key(text: str, *, taken: Collection[str] = (), fallback: str = "criterion") -> str:
    """
    Return a key made from a question or a name; a number tells it from the keys that are taken.

    Examples
    --------
    >>> suggested_key("Did the bot state a wrong fact?")
    'state_wrong_fact'
    >>> suggested_key("Did the bot state a wrong fact?", taken={"state_wrong_fact"})
    'state_wrong_fact_2'
    >>> suggested_key("礼貌吗？")
    'criterion'
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = [word for word in re.findall(r"[a-z][a-z0-9]*", plain) if word not in FILLERS]
    key = ""
    for word in words:
        longer = f"{key}_{word}" if key else word[:SUGGESTED_KEY_LIMIT]
        if len(longer) > SUGGESTED_KEY_LIMIT:
            break
        key = longer
    key = key or fallback
    number, free = 1, key
    while free in taken:
        number += 1
        free = f"{key}_{number}"
    return free


def version_hash(*, question: str, definition: str, passes_when: bool, allow_na: bool) -> str:
    """
    Return the SHA-256 of what raters and judge are asked; a change makes a new criterion version.

    Examples
    --------
    >>> version_hash(question="Q?", definition="D.", passes_when=True, allow_na=False)[:8]
    '3dcc3163'
    """
    canonical = json.dumps([question, definition, passes_when, allow_na], ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _dimension(fields: Fields, ignored: Ignored) -> DimensionSpec:
    ignored.note(fields.unknown(DIMENSION_FIELDS), "dimensions[].")
    key = fields.text("key", limit=CRITERION_KEY_LIMIT, blank=False)
    return DimensionSpec(key, fields.text("name", limit=NAME_LIMIT, blank=False))


def criterion_of(fields: Fields, dimensions: Collection[str], ignored: Ignored) -> CriterionSpec:
    """
    Validate one criterion; its dimension must be one of these keys.

    Raises FieldProblem.
    """
    ignored.note(fields.unknown(CRITERION_FIELDS), "criteria[].")
    key = fields.text("key", limit=CRITERION_KEY_LIMIT)
    if not CRITERION_KEY.fullmatch(key):
        raise fields.refuse(
            "key", f"must be lower-case letters, digits and _, letter first, not {shown(key)}"
        )
    dimension = fields.text("dimension")
    if dimension not in dimensions:
        known = ", ".join(sorted(dimensions))
        raise fields.refuse("dimension", f"{shown(dimension)} is not one of the dimensions: {known}")
    return CriterionSpec(
        key=key,
        dimension=dimension,
        tier=fields.choice("tier", TIERS),
        question=fields.text("question", blank=False),
        definition=fields.text("definition", blank=False),
        passes_when=fields.boolean("passes_when", default=True),
        allow_na=fields.boolean("allow_na", default=False),
        critical=fields.boolean("critical", default=False),
        knowledge=_knowledge(fields) if fields.given("knowledge") else None,
        state=fields.choice("state", STATES) if fields.given("state") else "",
        evidence_on_fail=(
            fields.boolean("evidence_on_fail", default=False) if fields.given("evidence_on_fail") else None
        ),
        words_for_raters={name: fields.text(name) for name in WORDS_FOR_RATERS if fields.given(name)},
    )


def _knowledge(fields: Fields) -> tuple[str, ...]:
    keys = fields.items("knowledge")
    for n, key in enumerate(keys):
        if not isinstance(key, str) or not 0 < len(key) <= KEY_LIMIT:
            raise fields.refuse(f"knowledge[{n}]", f"must be an article's key, not {shown(key)}")
    return tuple(dict.fromkeys(keys))


def check_once(field: str, keys: Iterable[str]) -> None:
    """Raise FieldProblem for the first key that appears twice in the list `field`."""
    seen: set[str] = set()
    for n, key in enumerate(keys):
        if key in seen:
            raise FieldProblem(f"{field}[{n}].key", f"{shown(key)} appears twice")
        seen.add(key)
