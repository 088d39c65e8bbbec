"""What a model at an endpoint takes, and where that is known from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from common.problems import FieldProblem, shown

TokenLimit = Literal["max_tokens", "max_completion_tokens"]
Schema = Literal["json_schema", "json_object", "text"]
Source = Literal["workspace", "learned", "known model", "price list", "default"]

# Tokens for the thoughts of a model that reasons, by effort, in addition to its answer.
THINKING_ROOM: Mapping[str, int] = {
    "none": 2_000,
    "minimal": 8_000,
    "low": 8_000,
    "medium": 12_000,
    "high": 24_000,
    "xhigh": 40_000,
    "max": 64_000,
}
# From the least thought to the most.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
LARGEST = 10_000_000
LONGEST_TIMEOUT = 3600


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What a model takes. None is unknown: such a setting is sent if somebody chose it, and learned.

    Attributes
    ----------
    reasons : it thinks before it answers, shown or hidden, and needs `room` for that.
    room : tokens for its thoughts; None takes THINKING_ROOM by effort.
    token_limit : the parameter that limits its tokens. `most_tokens` : the largest value it accepts.
    context : tokens of prompt and answer together.
    temperature, top_p, seed, effort, logprobs : whether it takes this parameter.
    efforts : the efforts that it takes; empty is unknown. Another one is sent as the nearest.
    schema : the strictest form of `response_format` that it takes.
    cache_key : it takes `prompt_cache_key`. `cache_control` : it caches the parts that are marked so.
    extra : further fields of every request, such as `enable_thinking`.
    timeout : seconds; None takes the one in the settings.
    sources : where each field that is not a default comes from.
    """

    reasons: bool | None = None
    room: int | None = None
    token_limit: TokenLimit = "max_tokens"  # noqa: S105  a parameter
    most_tokens: int | None = None
    context: int | None = None
    temperature: bool | None = None
    top_p: bool | None = None
    seed: bool | None = None
    effort: bool | None = None
    efforts: Sequence[str] = ()
    logprobs: bool | None = None
    schema: Schema = "json_schema"
    cache_key: bool | None = None
    cache_control: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout: int | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)

    def source(self, name: str) -> Source:
        """Return where a field comes from."""
        return self.sources.get(name, "default")

    def thinking_room(self, effort: str | None) -> int:
        """Return the tokens for its thoughts; 0 for a model that does not reason.

        Examples
        --------
        >>> ModelProfile(reasons=True).thinking_room("high"), ModelProfile().thinking_room("high")
        (24000, 0)
        """
        if not self.reasons:
            return 0
        return THINKING_ROOM.get(effort or "", THINKING_ROOM["medium"]) if self.room is None else self.room

    def nearest_effort(self, effort: str | None) -> str | None:
        """Return the effort to send for a chosen one; of two that are as near, the one with more thought.

        Examples
        --------
        >>> profile = ModelProfile(efforts=("low", "medium", "high"))
        >>> profile.nearest_effort("xhigh"), profile.nearest_effort("minimal"), profile.nearest_effort("low")
        ('high', 'low', 'low')
        """
        if effort not in EFFORTS or not self.efforts:
            return effort
        place = EFFORTS.index(effort)
        return min(self.efforts, key=lambda one: (abs(EFFORTS.index(one) - place), -EFFORTS.index(one)))

    def limit(self, *, tokens: int, effort: str | None, prompt_tokens: int) -> int:
        """Return the token limit to send: with room for thoughts, within what the model accepts.

        Examples
        --------
        >>> ModelProfile(reasons=True, context=10_000).limit(tokens=650, effort="low", prompt_tokens=3000)
        7000
        """
        room = self.thinking_room(self.nearest_effort(effort))
        wanted = tokens if tokens >= room else tokens + room
        if self.most_tokens is not None:
            wanted = min(wanted, self.most_tokens)
        if self.context is not None:
            # A prompt that fills the context is refused by the endpoint in its own words.
            left = self.context - prompt_tokens
            wanted = min(wanted, left) if left >= min(tokens, FEWEST_LEFT) else wanted
        return wanted

    def learn(self, changes: Mapping[str, Any]) -> "ModelProfile":
        """Return the profile with what an endpoint's answer taught."""
        return merged(self, [("learned", changes)])


# Below this an answer cannot be given at all.
FEWEST_LEFT = 64
FIELDS = tuple(entry.name for entry in fields(ModelProfile) if entry.name != "sources")


def merged(base: ModelProfile, layers: Sequence[tuple[Source, Mapping[str, Any]]]) -> ModelProfile:
    """Return a profile with these layers over it; the last one wins.

    Examples
    --------
    >>> layers = [("known model", {"reasons": True}), ("workspace", {"reasons": False})]
    >>> found = merged(ModelProfile(), layers)
    >>> found.reasons, found.source("reasons"), found.source("seed")
    (False, 'workspace', 'default')
    """
    values: dict[str, Any] = {}
    sources = dict(base.sources)
    for source, layer in layers:
        values |= layer
        sources |= dict.fromkeys(layer, source)
    return replace(base, **values, sources=sources)


def fields_read(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return checked fields of a profile from JSON.

    Raises
    ------
    FieldProblem : an unknown field or a value that is not allowed.
    """
    return {str(name): _value(str(name), value) for name, value in data.items()}


def _value(name: str, value: Any) -> Any:
    if name not in FIELDS:
        raise FieldProblem(name, f"is not a setting of a model; these are: {', '.join(FIELDS)}")
    if name in _WORDS:
        if value not in _WORDS[name]:
            raise FieldProblem(name, f"must be one of {', '.join(_WORDS[name])}, not {shown(value)}")
    elif name in _LARGEST:
        most = _LARGEST[name]
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            raise FieldProblem(name, f"must be a whole number from 1 to {most:,}, not {shown(value)}")
    elif name == "efforts":
        if not isinstance(value, list) or not value or set(map(str, value)) - set(EFFORTS):
            raise FieldProblem(name, f"must list some of {', '.join(EFFORTS)}, not {shown(value)}")
    elif name == "extra":
        if not isinstance(value, Mapping):
            raise FieldProblem(name, f"must be an object, not {shown(value)}")
        if taken := OUR_OWN & set(value):
            raise FieldProblem(name, f"must not set {', '.join(sorted(taken))}")
    elif not isinstance(value, bool):
        raise FieldProblem(name, f"must be true or false, not {shown(value)}")
    return value


_WORDS: Mapping[str, tuple[str, ...]] = {"token_limit": get_args(TokenLimit), "schema": get_args(Schema)}
_LARGEST = {"room": LARGEST, "most_tokens": LARGEST, "context": LARGEST, "timeout": LONGEST_TIMEOUT}
# Fields of a request that the product sets itself.
OUR_OWN = frozenset({"model", "messages", "stream", "n", "response_format", *get_args(TokenLimit)})
