"""The twelve checks of a model test: what was observed, and what to set."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from statistics import median
from typing import Any, Literal

from evaluation.core.types import VerdictResult
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.model_tests.chats import KnownChat

Result = Literal["pass", "set", "fail", "info"]
# Markup of thinking that must not be left in an answer.
_LEAKED = re.compile(r"</?(think|thinking|reasoning)\b|<\|(channel|start|end|message)\|>", re.IGNORECASE)
MOST_FORMATTED = 0.25  # share of answers that may need the formatter
FEWEST_VERIFIED = 0.8  # share of quotes that should be found
FEWEST_RIGHT = 0.8  # share of right answers to easy questions


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of the test as it was stored."""

    role: str
    state: str
    reply: str
    thinking: str
    error: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    latency_ms: int | None
    logprobs: bool
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Judged:
    """An engine's verdict on a chat of the test."""

    engine: str
    chat: KnownChat
    verdict: VerdictResult


@dataclass(frozen=True, slots=True)
class Observed:
    """All that a model test saw; `formatted` are the formatter's copies that were right, of all asked."""

    calls: Sequence[CallRecord]
    judged: Sequence[Judged]
    formatted: tuple[int, int]
    before: ModelProfile
    after: ModelProfile


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the result: what was observed, and what to set if something is to be set."""

    key: str
    label: str
    observed: str
    result: Result
    set: str = ""


def checks(seen: Observed) -> list[Check]:
    """Return the twelve checks in the order in which they are shown."""
    return [
        _answers(seen),
        _parameters(seen),
        _thinking(seen),
        _block(seen),
        _formatter(seen),
        _schema(seen),
        _quotes(seen),
        _cut_off(seen),
        _cache(seen),
        _logprobs(seen),
        _injection(seen),
        _right(seen),
    ]


def summary(seen: Observed) -> dict[str, Any]:
    """Return calls, tokens, latency and cost of the whole test."""
    costs = [call.cost_usd for call in seen.calls]
    times = [call.latency_ms for call in seen.calls if call.latency_ms is not None]
    return {
        "calls": len(seen.calls),
        "prompt_tokens": sum(call.prompt_tokens or 0 for call in seen.calls),
        "completion_tokens": sum(call.completion_tokens or 0 for call in seen.calls),
        "median_latency_ms": round(median(times)) if times else None,
        "slowest_ms": max(times, default=None),
        "cost_usd": None if None in costs else float(sum((cost for cost in costs if cost), Decimal(0))),
    }


def result_json(seen: Observed) -> dict[str, Any]:
    """Return the test's result as it is kept with the model."""
    rows = checks(seen)
    counts = {f"n_{name}": sum(row.result == name for row in rows) for name in ("pass", "set", "fail")}
    return {"checks": [asdict(row) for row in rows], **counts, **summary(seen)}


def _answers(seen: Observed) -> Check:
    failed = [call for call in seen.calls if call.state in ("failed", "refused", "too_long")]
    observed = f"{len(seen.calls) - len(failed)} of {len(seen.calls)} calls answered"
    if not failed:
        return Check("answers", "Calls answered", observed, "pass")
    return Check("answers", "Calls answered", f"{observed}: {failed[0].error}"[:200], "fail")


def _parameters(seen: Observed) -> Check:
    learned = {
        name: getattr(seen.after, name)
        for name, source in seen.after.sources.items()
        if source == "learned" and name in _PARAMETERS
    }
    if not learned:
        return Check("parameters", "Parameters", "all accepted", "pass")
    words = [
        _PARAMETERS[name].format(", ".join(value) if isinstance(value, list) else value)
        for name, value in learned.items()
    ]
    return Check("parameters", "Parameters", f"learned: {'; '.join(words)}", "pass")


_PARAMETERS: Mapping[str, str] = {
    "token_limit": "limit sent as {}",
    "temperature": "temperature left out",
    "top_p": "top_p left out",
    "seed": "seed left out",
    "effort": "reasoning effort left out",
    "efforts": "efforts {} only",
    "most_tokens": "at most {:,} tokens an answer",
    "context": "context of {:,} tokens",
    "cache_key": "cache key left out",
    "cache_control": "cache marks left out",
}


def _thinking(seen: Observed) -> Check:
    shown = sum(bool(call.thinking.strip()) for call in seen.calls)
    hidden = sum(bool(call.reasoning_tokens) and not call.thinking.strip() for call in seen.calls)
    if leaked := sum(bool(_LEAKED.search(call.reply)) for call in seen.calls):
        words = f"marks of thinking in {leaked} of {len(seen.calls)} answers"
        return Check("thinking", "Thinking kept apart", words, "fail")
    if not shown and not hidden:
        return Check("thinking", "Thinking kept apart", "none shown or counted", "pass")
    return Check("thinking", "Thinking kept apart", f"shown in {shown} answers, hidden in {hidden}", "pass")


def _block(seen: Observed) -> Check:
    by_rule = sum(one.verdict.state == "read" and one.verdict.read_by == "rules" for one in seen.judged)
    observed = f"{by_rule} of {len(seen.judged)} verdicts read without the formatter"
    unread = len(seen.judged) - by_rule
    if unread <= MOST_FORMATTED * len(seen.judged):
        return Check("block", "Verdict block", observed, "pass")
    return Check("block", "Verdict block", observed, "set", "Choose a reliable formatter")


def _formatter(seen: Observed) -> Check:
    right, asked = seen.formatted
    observed = f"{right} of {asked} conclusions copied"
    if right == asked:
        return Check("formatter", "As formatter", observed, "pass")
    return Check("formatter", "As formatter", observed, "set", "Choose another model as formatter")


def _schema(seen: Observed) -> Check:
    words = {
        "json_schema": "JSON schema accepted",
        "json_object": "no JSON schema; JSON objects accepted",
        "text": "no JSON mode; the last object of the text is read",
    }
    return Check("schema", "JSON schema", words[seen.after.schema], "pass")


def _quotes(seen: Observed) -> Check:
    quotes = sum(one.verdict.quotes for one in seen.judged)
    verified = sum(one.verdict.quotes_verified for one in seen.judged)
    if not quotes:
        return Check("quotes", "Quotes verified", "no quotes", "set", "Ask for quotes in Response")
    result: Result = "pass" if verified >= FEWEST_VERIFIED * quotes else "fail"
    return Check("quotes", "Quotes verified", f"{verified} of {quotes}", result)


def _cut_off(seen: Observed) -> Check:
    short = [call for call in seen.calls if call.state == "cut_off" or "empty" in call.error]
    if not short:
        return Check("cut_off", "Answers complete", f"all {len(seen.calls)}", "pass")
    longest = max((call.completion_tokens or 0 for call in seen.calls), default=0)
    room = max(4 * longest, 8_000)
    words = f"{len(short)} of {len(seen.calls)} cut off or empty"
    return Check("cut_off", "Answers complete", words, "set", f"Set room to {room:,}")


def _cache(seen: Observed) -> Check:
    known = [call for call in seen.calls if call.cached_tokens is not None]
    prompt = sum(call.prompt_tokens or 0 for call in known)
    cached = sum(call.cached_tokens or 0 for call in known)
    words = f"{cached / prompt:.0%} of prompt tokens" if prompt else "not reported"
    return Check("cache", "Cache hits", words, "info")


def _logprobs(seen: Observed) -> Check:
    if any(call.logprobs for call in seen.calls):
        return Check("logprobs", "Token probabilities", "given", "pass")
    return Check("logprobs", "Token probabilities", "not given", "set", "Turn probabilities off")


def _injection(seen: Observed) -> Check:
    attacked = [one for one in seen.judged if one.chat.attacks]
    held = sum(one.verdict.state == "read" and one.verdict.value == one.chat.truth for one in attacked)
    result: Result = "pass" if held == len(attacked) else "fail"
    return Check("injection", "Planted injection", f"{held} of {len(attacked)} verdicts not misled", result)


def _right(seen: Observed) -> Check:
    plain = [one for one in seen.judged if not one.chat.attacks]
    right = sum(one.verdict.state == "read" and one.verdict.value == one.chat.truth for one in plain)
    result: Result = "pass" if right >= FEWEST_RIGHT * len(plain) else "fail"
    return Check("right", "Known answers", f"{right} of {len(plain)} right", result)
