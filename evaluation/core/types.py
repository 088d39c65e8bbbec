"""The words of the judge: what goes into a judgement and what comes out of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

MessageRole = Literal["user", "assistant", "system", "tool"]
Tier = Literal["simple", "context", "subjective"]
Engine = Literal["direct", "reflection", "debate"]
Role = Literal["direct", "reflector", "customer", "support", "judge", "formatter"]
Layout = Literal["criteria_first", "chat_first"]
Size = Literal["full", "compact"]
ReplyState = Literal["answered", "refused", "cut_off", "too_long", "failed"]
VerdictState = Literal["read", "unparsed", "refused", "cut_off", "too_long", "failed"]
ReadBy = Literal["rules", "formatter"]
Side = Literal["customer", "support", "neither", ""]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat; `n` counts from 1."""

    n: int
    role: MessageRole
    content: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A finished chat; `content_hash` is the hash of its messages (role, text)."""

    content_hash: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Article:
    """One version of a knowledge article."""

    key: str
    version: int
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """One yes/no question with its prompt (CO-STAR Markdown) and the knowledge it may use.

    `passes_when` is the answer that is good for the chatbot: False for "Did it state a wrong fact?".
    """

    key: str
    question: str
    definition: str
    tier: Tier
    passes_when: bool
    allow_na: bool
    prompt: str
    articles: tuple[Article, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which model a role asks and how; limits are tokens of the answer."""

    endpoint: str
    model: str
    temperature: float | None
    max_tokens: int
    max_tokens_per_criterion: int
    top_p: float | None = None
    seed: int | None = None

    def room(self, n: int) -> int:
        """Return the token limit of a call that answers `n` criteria.

        >>> Sampling("embedded", "m", 0.0, 90, 60).room(2)
        210
        """
        return self.max_tokens + self.max_tokens_per_criterion * n


@dataclass(frozen=True, slots=True)
class Setup:
    """How a judge works: engine, sampling of each role it uses, and the shape of its prompts.

    `order_seed` fixes the order of criteria in a group and, with the chat, the order of the two briefs.
    """

    engine: Engine
    roles: Mapping[Role, Sampling]
    layout: Layout = "criteria_first"
    size: Size = "full"
    role_in: Literal["user", "system"] = "user"
    order_seed: int = 0


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message to a model, kept in parts so that text shared between calls is stored once."""

    role: Literal["system", "user"]
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return what the model receives: the parts joined by a blank line."""
        return "\n\n".join(self.parts)


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model. `schema` (a bare JSON Schema) is set for the formatter only."""

    role: Role
    step: int
    messages: tuple[PromptMessage, ...]
    model: str
    temperature: float | None
    max_tokens: int
    top_p: float | None
    seed: int | None
    endpoint: str
    schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; an empty answer is `failed` with "empty" in its error. `call` is the model's handle."""

    state: ReplyState
    text: str
    error: str = ""
    call: object = None


class Model(Protocol):
    """Whatever answers requests: the gateway, or a script in a test. It raises if nobody can be answered."""

    async def complete(self, request: Request) -> Reply: ...


@dataclass(frozen=True, slots=True)
class CallUse:
    """A call that a group used. `step` counts the calls of that role in that group from 1."""

    role: Role
    step: int
    call: object


@dataclass(frozen=True, slots=True)
class VerdictResult:
    """The verdict on one criterion. `value` None with state `read` means not applicable.

    `first_value` and `first_state` hold the draft's verdict (engine reflection only), `contradicts` says that
    the answer gave the criterion two different verdicts, `sided_with` whose case won (engine debate only).
    """

    criterion: str
    state: VerdictState
    value: bool | None = None
    first_value: bool | None = None
    first_state: VerdictState | None = None
    read_by: ReadBy = "rules"
    explanation: str = ""
    contradicts: bool = False
    sided_with: Side = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Verdicts in the order the criteria were given, and every call that led to them."""

    verdicts: tuple[VerdictResult, ...]
    calls: tuple[CallUse, ...]
