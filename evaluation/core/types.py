"""The judge's data types: what goes into a judgement and what comes out of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

MessageRole = Literal["user", "assistant", "system", "tool"]
Tier = Literal["simple", "context", "subjective"]
Engine = Literal["direct", "reflection", "debate"]
# A key of evaluation.engines.core.roles; `reviser` and `definer` in requests that draft texts.
Role = str
Layout = Literal["criteria_first", "chat_first"]
Size = Literal["full", "compact"]
RoleIn = Literal["user", "system"]
ReplyState = Literal["answered", "refused", "cut_off", "too_long", "failed"]
VerdictState = Literal["read", "unparsed", "refused", "cut_off", "too_long", "failed"]
ReadBy = Literal["rules", "formatter"]
# The role of the advocate whose answer a Judge reached, "neither" for not applicable, "" without a verdict.
Side = str
Stance = Literal["failing", "passing"]
Ablation = Literal["", "no_briefs", "placebo_briefs", "swapped_order"]
KnowledgeMode = Literal["none", "static", "retrieved"]
WindowRule = Literal["any_fails", "last_decides"]
Vector = NDArray[np.float32]


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
class Example:
    """A worked excerpt of a `train` chat: marked lines, the answer that raters gave, and why."""

    content_hash: str
    excerpt: str
    value: bool | None
    rationale: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """One yes/no question with its prompt (CO-STAR Markdown) and the knowledge it may use.

    Attributes
    ----------
    passes_when : the answer that is good for the chatbot: False for "Did it state a wrong fact?".
    articles : what the criterion may read: all of it (static), or what is searched (retrieved).
    """

    key: str
    question: str
    definition: str
    tier: Tier
    passes_when: bool
    allow_na: bool
    prompt: str
    articles: tuple[Article, ...]
    examples: tuple[Example, ...] = ()


class ModelAt(NamedTuple):
    """A model at an endpoint (its id): prices, limits and what it takes differ from one to another."""

    endpoint: str
    model: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which model a role uses and how; limits are tokens of the answer."""

    endpoint: str
    model: str
    temperature: float | None
    max_tokens: int
    max_tokens_per_criterion: int
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    logprobs: bool = False
    extra: Mapping[str, Any] | None = None  # further fields of the request, by their names at the endpoint

    @property
    def at(self) -> ModelAt:
        """Return the model with its endpoint."""
        return ModelAt(self.endpoint, self.model)

    def room(self, n: int) -> int:
        """Return the token limit of a call that answers `n` criteria.

        Examples
        --------
        >>> Sampling("embedded", "m", 0.0, 90, 60).room(2)
        210
        """
        return self.max_tokens + self.max_tokens_per_criterion * n


@dataclass(frozen=True, slots=True)
class Windows:
    """How a chat that is too long for one call is judged: in overlapping windows of whole messages.

    Attributes
    ----------
    tokens : chats with more estimated tokens are split.
    overlap : messages that neighbouring windows share.
    rule : `any_fails`: a failing answer in any window decides. `last_decides`: the last window in which the
        criterion applies decides.
    """

    tokens: int
    overlap: int = 4
    rule: WindowRule = "any_fails"


@dataclass(frozen=True, slots=True)
class Setup:
    """How a judge works: engine, sampling of each role it uses, and the shape of its prompts.

    Attributes
    ----------
    order_seed : fixes the order of criteria in a group and, with the chat, the order of the briefs.
    samples : answers to each question; their majority decides.
    passage_tokens : budget for retrieved passages in a call (knowledge mode retrieved).
    embedding_model : ranks passages by meaning as well; "" ranks them by words only.
    """

    engine: Engine
    roles: Mapping[Role, Sampling]
    layout: Layout = "criteria_first"
    size: Size = "full"
    role_in: RoleIn = "user"
    order_seed: int = 0
    samples: int = 1
    knowledge: KnowledgeMode = "static"
    passage_tokens: int = 0
    embedding_model: str = ""
    windows: Windows | None = None
    ablation: Ablation = ""


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message to a model, in parts, so that text shared between calls is stored once."""

    role: Literal["system", "user"]
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return what the model receives: the parts joined by a blank line."""
        return "\n\n".join(self.parts)


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    Attributes
    ----------
    schema : a bare JSON Schema; formatter only.
    extra : further fields, by their names at the endpoint.
    sample : number of this answer to the same question, from 0.
    window : number of the long chat's window, from 0.
    """

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
    reasoning_effort: str | None = None
    logprobs: bool = False
    extra: Mapping[str, Any] | None = None
    sample: int = 0
    window: int = 0

    @property
    def at(self) -> ModelAt:
        """Return the model with its endpoint."""
        return ModelAt(self.endpoint, self.model)


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One generated token with its natural-log probability and the best alternatives."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """An empty answer is `failed` with "empty" in its error; `call` is the model's handle."""

    state: ReplyState
    text: str
    error: str = ""
    call: object = None
    logprobs: tuple[TokenLogprob, ...] | None = None


class Model(Protocol):
    """Anything that answers requests: the gateway, or a script in a test. Raises if nobody can answer."""

    async def complete(self, request: Request) -> Reply: ...


class Embedder(Protocol):
    """Gives a vector of length 1 for each text, by text; None if it cannot give all. Never raises."""

    async def embed(self, texts: Sequence[str]) -> Mapping[str, Vector] | None: ...


@dataclass(frozen=True, slots=True)
class CallUse:
    """A call of a group; `step` counts the role's calls in this window and sample, from 1."""

    role: Role
    step: int
    call: object
    window: int = 0
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Votes:
    """How the readable samples answered one criterion."""

    true: int
    false: int
    not_applicable: int


@dataclass(frozen=True, slots=True)
class VerdictResult:
    """The verdict on one criterion. `value` None with state `read` means not applicable.

    Attributes
    ----------
    first_value, first_state : the draft's verdict (engine reflection only).
    contradicts : the answer gave the criterion two different verdicts.
    sided_with : the advocate whose answer the Judge reached (engine debate only).
    p_true : probability of TRUE, 0 to 1, if the endpoint returns token probabilities.
    votes : the samples' answers.
    quotes, quotes_verified, quotes_close : quotes in the prose, those found in the message they name, and
        those of which similar words were found.
    first_brief : the advocate whose brief the Judge read first.
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
    p_true: float | None = None
    votes: Votes | None = None
    quotes: int = 0
    quotes_verified: int = 0
    quotes_close: int = 0
    first_brief: Side = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved passage; `start` and `end` are code points of the article's text."""

    article: Article
    rank: int
    start: int
    end: int
    score: float

    @property
    def text(self) -> str:
        """Return the passage's text."""
        return self.article.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Verdicts in the order of the criteria, the calls that led to them, and passages by criterion."""

    verdicts: tuple[VerdictResult, ...]
    calls: tuple[CallUse, ...]
    passages: Mapping[str, tuple[Passage, ...]] = field(default_factory=dict)
