"""Rules that give a chat its topic: keywords and metadata, in order; the first that fits wins."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from common.jsonl import KEY_LIMIT, Fields
from common.problems import FieldProblem, shown

UNKNOWN = "unknown"
MAX_RULES, MAX_WORDS = 500, 200
SPEAKERS = ("user", "assistant", "any")
_RULE_FIELDS = frozenset(("topic", "any", "all", "none", "said_by", "metadata"))
_PATH = re.compile(r"[^.\s]+(?:\.[^.\s]+)*")

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class MetadataCondition:
    """
    A condition on a field of the metadata.

    `path` leads to it, as in "order.country"; it fits where the value, or an item of a list, is one of
    `values`. With `exists` set the value does not count, only whether there is one.
    """

    path: str
    values: tuple[Scalar, ...] = ()
    exists: bool | None = None

    def fits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a chat with this metadata meets the condition."""
        value: Any = metadata
        for name in [self.path] if self.path in metadata else self.path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if self.exists is not None:
            return (value is not None) == self.exists
        items = value if isinstance(value, list) else [value]
        return any(_same(item, wanted) for item in items for wanted in self.values)


@dataclass(frozen=True, slots=True)
class Rule:
    """A topic and all that must hold for it; patterns are None where the rule has no such words."""

    topic: str
    any_of: re.Pattern[str] | None = None
    all_of: tuple[re.Pattern[str], ...] = ()
    none_of: re.Pattern[str] | None = None
    said_by: str = "user"
    metadata: tuple[MetadataCondition, ...] = ()

    def fits(self, texts: Mapping[str, str], metadata: Mapping[str, Any]) -> bool:
        """Whether a chat meets every condition; `texts` holds its text by `said_by`."""
        if not all(condition.fits(metadata) for condition in self.metadata):
            return False
        text = texts[self.said_by]
        if self.any_of and not self.any_of.search(text):
            return False
        if not all(pattern.search(text) for pattern in self.all_of):
            return False
        return not (self.none_of and self.none_of.search(text))


@dataclass(frozen=True, slots=True)
class TopicDecision:
    """A chat's topic and what gave it; `rule` counts from 1."""

    topic: str
    by: Literal["sender", "rule", "none"]
    rule: int | None = None


def topic_of(
    *,
    sent: str | None,
    messages: Sequence[Mapping[str, Any]],
    metadata: Mapping[str, Any],
    rules: Sequence[Rule],
) -> TopicDecision:
    """
    Return a chat's topic: the sender's, else that of the first rule that fits, else *unknown*.

    A topic "unknown" of the sender is no topic, so the rules are asked. A rule may give *unknown* itself.

    Parameters
    ----------
    sent : the topic that came with the chat.
    messages : of the chat, {"role", "content"}.

    Examples
    --------
    >>> rules = rules_of(Fields({"rules": [{"topic": "returns", "any": ["refund*", "send back"]}]}))
    >>> topic_of(sent=None, messages=[{"role": "user", "content": "No REFUNDS?"}], metadata={}, rules=rules)
    TopicDecision(topic='returns', by='rule', rule=1)
    """
    if sent and sent.strip() and sent.strip() != UNKNOWN:
        return TopicDecision(sent.strip(), "sender")
    said = {role: "\n".join(_contents(messages, role)).casefold() for role in ("user", "assistant")}
    texts = said | {"any": "\n".join(_contents(messages, "")).casefold()}
    for number, rule in enumerate(rules, 1):
        if rule.fits(texts, metadata):
            return TopicDecision(rule.topic, "rule", number)
    return TopicDecision(UNKNOWN, "none")


def rules_of(document: Fields) -> tuple[Rule, ...]:
    """
    Return the rules of a file: {"rules": [{"topic", "any"?, "all"?, "none"?, "said_by"?, "metadata"?}]}.

    - `any`, `all`, `none`: words or phrases in what was said; case does not count, words are whole, and a
      star at an end stands for any letters: "refund*".
    - `said_by`: user (default), assistant, or any; tools and system texts count for any alone.
    - `metadata`: {"channel": "mail", "order.country": ["DE", "AT"], "coupon": {"exists": true}}.

    Raises
    ------
    FieldProblem
        with the path, for a rule without a topic or without conditions, a wrong type, an unknown field, more
        than 500 rules or 200 words, or a rule that never comes to its turn, as an earlier one is the same.

    Examples
    --------
    >>> rules_of(Fields({"rules": [{"topic": "returns", "any": "refund"}]}))
    Traceback (most recent call last):
    common.problems.FieldProblem: rules[0].any: must be a list, not 'refund'
    """
    items = document.items("rules")
    if extra := sorted(document.unknown(frozenset(("rules",)))):
        raise document.refuse(extra[0], "unknown field: a file of rules has the field rules")
    if len(items) > MAX_RULES:
        raise document.refuse("rules", f"holds {len(items):,} rules; {MAX_RULES} is the limit")
    rules: list[Rule] = []
    seen: dict[str, int] = {}
    for n, item in enumerate(items):
        fields = Fields(item, f"rules[{n}]")
        rules.append(_rule(fields))
        conditions = repr(sorted((key, value) for key, value in fields.data.items() if key != "topic"))
        if conditions in seen:
            raise FieldProblem(
                fields.path, f"has the same conditions as rules[{seen[conditions]}]: remove one"
            )
        seen[conditions] = n
    return tuple(rules)


def _rule(fields: Fields) -> Rule:
    topic = fields.text("topic", limit=KEY_LIMIT, blank=False).strip()
    if extra := sorted(fields.unknown(_RULE_FIELDS)):
        names = ", ".join(sorted(_RULE_FIELDS))
        raise fields.refuse(extra[0], f"unknown field: a rule has {names}")
    if not any(fields.data.get(key) for key in ("any", "all", "none", "metadata")):
        raise FieldProblem(fields.path, "has no condition: add any, all, none or metadata")
    any_of, all_of, none_of = (_words(fields, key) for key in ("any", "all", "none"))
    return Rule(
        topic=topic,
        any_of=_pattern(any_of),
        all_of=tuple(pattern for word in all_of if (pattern := _pattern([word]))),
        none_of=_pattern(none_of),
        said_by=fields.choice("said_by", SPEAKERS, default="user"),
        metadata=_conditions(fields) if fields.given("metadata") else (),
    )


def _words(fields: Fields, key: str) -> list[str]:
    items = fields.items(key, default=[])
    if len(items) > MAX_WORDS:
        raise fields.refuse(key, f"holds {len(items):,} words; {MAX_WORDS} is the limit")
    for n, item in enumerate(items):
        if not isinstance(item, str):
            raise fields.refuse(f"{key}[{n}]", f"must be text, not {shown(item)}")
        if not re.search(r"\w", item):
            raise fields.refuse(f"{key}[{n}]", f"must hold a word, not {shown(item)}")
        if len(item) > KEY_LIMIT:
            raise fields.refuse(f"{key}[{n}]", f"is longer than {KEY_LIMIT} characters ({len(item):,})")
        if "*" in item.strip().strip("*"):
            raise fields.refuse(f"{key}[{n}]", f"may have a star at its ends alone, not {shown(item)}")
    return items


def _pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    """Return one pattern for any of some words; spaces in a phrase fit any white space."""
    parts = []
    for word in words:
        text = word.strip().casefold()
        inner = r"\s+".join(re.escape(piece) for piece in text.strip("*").split())
        start = "" if text.startswith("*") else r"(?<!\w)"
        end = "" if text.endswith("*") else r"(?!\w)"
        parts.append(f"{start}{inner}{end}")
    return re.compile("|".join(parts)) if parts else None


def _conditions(fields: Fields) -> tuple[MetadataCondition, ...]:
    found = []
    for path, value in fields.mapping("metadata").items():
        place = f"metadata.{path}"
        if not _PATH.fullmatch(path):
            raise fields.refuse(place, "must be a name, or names with dots between them")
        if isinstance(value, dict):
            exists = value.get("exists")
            if value.keys() != {"exists"} or not isinstance(exists, bool):
                raise fields.refuse(place, 'must be a value, a list of values or {"exists": true or false}')
            found.append(MetadataCondition(path, exists=exists))
            continue
        values = value if isinstance(value, list) else [value]
        if not values:
            raise fields.refuse(place, "must hold at least one value")
        for n, item in enumerate(values):
            if not isinstance(item, Scalar):
                raise fields.refuse(
                    f"{place}[{n}]", f"must be text, a number, true, false or null, not {shown(item)}"
                )
        found.append(MetadataCondition(path, tuple(values)))
    return tuple(found)


def _same(value: Any, wanted: Scalar) -> bool:
    # NB: in Python True equals 1; in a rule it does not.
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, str) and isinstance(wanted, str):
        return value.casefold() == wanted.casefold()
    return bool(value == wanted)


def _contents(messages: Sequence[Mapping[str, Any]], role: str) -> list[str]:
    return [str(one["content"]) for one in messages if not role or one.get("role") == role]
