"""The simulated judge of demo workspaces: answers like a model, wrong at known rates, and asks nobody."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from types import TracebackType
from typing import Any, Protocol, Self

from common.problems import InputProblem
from evaluation.gateway.endpoints import SIMULATED, Endpoint
from evaluation.gateway.prices import Price
from evaluation.gateway.replies import Outcome
from labeling.models.people import Workspace

SIMULATED_MODEL = "Simulated judge"
SIMULATED_NOTICE = "simulated judge: its verdicts, times and prices are invented"
INVENTED_PRICE = Price(
    input=Decimal("0.40"),
    cached_input=Decimal("0.10"),
    output=Decimal("1.60"),
    source="invented prices of the simulated judge",
)
_COMPLETIONS = "/chat/completions"
OUTSIDE = "the simulated judge exists in demo workspaces only: choose another model"
# Of the errors, the share that stays with a chat whatever the prompt; the rest changes with every version.
STAYS = 0.9
_CHARACTERS_A_TOKEN = 4
_CACHED_SHARE = 0.8  # of the system message, which is equal for all chats
_FENCED = re.compile(r"^<<chat \w+>>\n(.*?)\n?^<<end chat \w+>>", re.DOTALL | re.MULTILINE)
_CRITERION = re.compile(r"^## Criterion `(\w+)`$", re.MULTILINE)
_ARGUED = re.compile(r"^- (\w+): (TRUE|FALSE), that is", re.MULTILINE)
_COPIED = re.compile(r"^- (\w+): true, false", re.MULTILINE)
_MESSAGE = re.compile(r"^m(\d+) ([a-z-]+)\| (.+)$", re.MULTILINE)
# The duty and the list of a topic prompt: see alignment/topic_prompt/core.
_TOPIC_DUTY = "TOPIC: <the name of a topic"
_TOPIC = re.compile(r"^- ([^:\n]+): ", re.MULTILINE)
_TOPIC_ERRORS = 0.06
_NO_TOPIC = "unknown"
_DUTIES = {
    "# Your duty: review": "direct",
    "# Your duty: audit": "reflector",
    "# Your duty: judge": "judge",
    "# Your duty: the customer's brief": "brief",
    "# Your duty: the bot's brief": "brief",
}
_WORDS = {True: "TRUE", False: "FALSE", None: "NOT_APPLICABLE"}


@dataclass(frozen=True, slots=True)
class Case:
    """What is true of a chat: the answer by criterion, and the message that decides it, where one does.

    `address` is the hash of its transcript.
    """

    address: str
    truth: Mapping[str, bool | None]
    evidence: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Errors:
    """How often a prompt version is wrong: misses a fault, raises a false alarm; for each role of a judge.

    `passes_when` is the criterion's good answer; `version` names the text that these rates belong to.
    """

    passes_when: bool
    version: str
    miss: float
    alarm: float
    roles: Mapping[str, float]

    def rate(self, truth: bool | None, role: str) -> float:
        """Return the chance of a wrong answer, 0 to 1."""
        share = self.alarm if truth is None or truth == self.passes_when else self.miss
        return min(1.0, share * self.roles.get(role, 1.0))


class Answers(Protocol):
    """What the simulated judge knows; never part of a prompt or of the database."""

    seed: int
    unreadable: float
    phrases: Mapping[str, Sequence[str]]

    def case(self, transcript: str) -> Case | None:
        """Return what is true of a chat, by its marked lines in the prompt; None for an unknown chat."""

    def errors(self, key: str, prompt: str) -> Errors | None:
        """Return the error rates of a criterion's prompt by its text; None for an unknown criterion."""

    def topic(self, transcript: str) -> str:
        """Return the topic of a chat, by what customer and bot said in the prompt; "" for an unknown chat."""


_sources: list[Callable[[], Answers]] = []


def answers_from(source: Callable[[], Answers]) -> None:
    """Register where the simulated judge's answers come from; called once, by the app that has them."""
    _sources[:] = [source]


def simulated_endpoint() -> Endpoint:
    """Return the simulated judge's endpoint. Raises InputProblem outside demo workspaces."""
    if not Workspace.is_demo():
        raise InputProblem(OUTSIDE)
    return Endpoint(id=SIMULATED, base_url=SIMULATED, api_key="", embedded=False)


class SimulatedClient:
    """Stands where a client of an endpoint does, and sends nothing."""

    def __init__(self, answers: Answers | None = None) -> None:
        self._answers = answers or _sources[0]()
        self.endpoint = Endpoint(id=SIMULATED, base_url=SIMULATED, api_key="", embedded=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def send(
        self, body: dict[str, Any], *, timeout: float, path: str = _COMPLETIONS, read: object = None
    ) -> Outcome:
        """Return the simulated judge's answer to one request, with an invented latency."""
        if path != _COMPLETIONS:
            return Outcome(kind="bad_request", status=400, error="the simulated judge only judges chats")
        system, user = (str(message["content"]) for message in body["messages"][:2])
        return simulated_outcome(system=system, user=user, answers=self._answers)


def simulated_outcome(*, system: str, user: str, answers: Answers) -> Outcome:
    """Return the simulated judge's answer with invented tokens and latency."""
    text = answer_text(system=system, user=user, answers=answers)
    prompt, completion = _tokens(system) + _tokens(user), _tokens(text)
    return Outcome(
        kind="answered",
        status=200,
        text=text,
        finish_reason="stop",
        prompt_tokens=prompt,
        cached_tokens=round(_tokens(system) * _CACHED_SHARE),
        completion_tokens=completion,
        latency_ms=500 + 8 * completion + round(700 * _share("latency", text[:200], prompt)),
    )


def answer_text(*, system: str, user: str, answers: Answers) -> str:
    """Return the prose with its VERDICTS block, a brief, a topic, or the formatter's JSON."""
    role = next((role for duty, role in _DUTIES.items() if duty in user or duty in system), "formatter")
    if role == "formatter" and _TOPIC_DUTY not in user:
        entry = {"explanation": "The text reaches no conclusion.", "value": "unclear"}
        return json.dumps({"verdicts": dict.fromkeys(_COPIED.findall(user), entry)})
    fenced = _FENCED.search(user)
    transcript = fenced[1] if fenced else ""
    if _TOPIC_DUTY in user:
        return f"TOPIC: {_topic(transcript, _TOPIC.findall(system), answers)}"
    case = answers.case(transcript)
    if case is None:
        return answers.phrases["unknown chat"][0]
    prompts = _prompts(system) or _prompts(user)
    writer = _Writer(answers, case, transcript, role)
    if role == "brief":
        return "\n\n".join(writer.brief(key, word == "TRUE") for key, word in _ARGUED.findall(user))
    if _share(answers.seed, case.address, "unreadable", role, *prompts) < answers.unreadable:
        return answers.phrases["unreadable"][0]
    verdicts = {key: writer.verdict(key, prompt) for key, prompt in prompts.items()}
    prose = [writer.section(key, prompt, verdicts[key]) for key, prompt in prompts.items()]
    block = ["VERDICTS", *(f"{key}: {_WORDS[verdict]}" for key, verdict in verdicts.items())]
    return "\n\n".join((*prose, "\n".join(block)))


def _topic(transcript: str, listed: Sequence[str], answers: Answers) -> str:
    """Return the topic of a chat, or sometimes another one of the list."""
    known = answers.topic(transcript)
    others = [topic for topic in listed if topic not in (known, _NO_TOPIC)]
    if known and others and _share(answers.seed, transcript, "topic") < _TOPIC_ERRORS:
        return others[int(_share(transcript, "other topic") * len(others))]
    return known if known in listed else _NO_TOPIC


@lru_cache(maxsize=64)  # equal for all chats of a run
def _prompts(text: str) -> dict[str, str]:
    """Return each criterion's part of a prompt, by key."""
    starts = list(_CRITERION.finditer(text))
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {match[1]: text[match.start() : end] for match, end in zip(starts, ends, strict=True)}


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes about one chat in one role."""

    answers: Answers
    case: Case
    transcript: str
    role: str

    def verdict(self, key: str, prompt: str, *, role: str = "") -> bool | None:
        """Return the simulated answer to a criterion: the truth, or an error at this prompt's rate."""
        errors = self.answers.errors(key, prompt)
        if errors is None or key not in self.case.truth:
            return self.case.truth.get(key, True)
        truth = self.case.truth[key]
        rate = errors.rate(truth, role or self.role)
        stays = _share(self.answers.seed, self.case.address, key) < STAYS * rate
        changes = _share(self.answers.seed, self.case.address, key, errors.version) < (1 - STAYS) * rate
        if not (stays or changes):
            return truth
        return errors.passes_when if truth is None else not truth

    def section(self, key: str, prompt: str, verdict: bool | None) -> str:
        """Return the prose on one criterion, in the form that the role's duty asks for."""
        errors = self.answers.errors(key, prompt)
        passes = verdict is None or (errors is not None and verdict == errors.passes_when)
        kind = "na" if verdict is None else "fine" if passes else "fault"
        missed = kind == "fine" and self.case.truth.get(key, True) != verdict
        reason = self._phrase(f"{key} {'missed' if missed else kind}", kind)
        lines = [
            key,
            f"Evidence: {self._quote(key)} {reason}",
            f"Against: {self._phrase('against', kind)}",
            f"Rule: {self._phrase('rule', kind)}",
        ]
        if self.role == "reflector":
            changed = self.verdict(key, prompt, role="direct") != verdict
            lines.append(f"{'CHANGE' if changed else 'KEEP'}: {self._phrase('audit', kind)}")
        if self.role == "judge":
            lines.insert(1, self._phrase("weighs", kind))
        return "\n".join((*lines, f"Conclusion: {_WORDS[verdict]}."))

    def brief(self, key: str, answer: bool) -> str:
        """Return an advocate's case for an answer."""
        case = self._phrase("brief", str(answer))
        return f"{key}\n1. {self._quote(key)} {case} Therefore the answer is {_WORDS[answer].lower()}."

    def _phrase(self, name: str, kind: str) -> str:
        options = self.answers.phrases.get(name) or self.answers.phrases[kind]
        return options[int(_share(self.case.address, name, self.role) * len(options))]

    def _quote(self, key: str) -> str:
        """Return a quote of the deciding message, or of the bot's first one."""
        messages = _messages(self.transcript)
        wanted = self.case.evidence.get(key)
        of_bot = [one for one in messages if one[1] == "bot"] or messages
        number, _, text = next((one for one in messages if int(one[0]) == wanted), of_bot[0])
        words = text.replace('"', "").split()
        return f'[m{int(number)}: "{" ".join(words[:9])}"]' if len(words) > 1 else f"[m{int(number)}]"


@lru_cache(maxsize=1024)  # a chat is judged on many criteria
def _messages(transcript: str) -> list[tuple[str, str, str]]:
    """Return number, speaker and words of each line of a chat."""
    return _MESSAGE.findall(transcript)


def _share(*parts: object) -> float:
    """Return a number from 0 to 1 that is always the same for the same parts."""
    digest = hashlib.sha256("\n".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _tokens(text: str) -> int:
    return max(1, len(text) // _CHARACTERS_A_TOKEN)
