"""Known kinds of endpoints with OpenAI's chat completions: where they are, and what differs from OpenAI.

What a request leaves out at a known address is in `known_models`; the rest is learned from an endpoint's own
answers. The sentences here are for the person who connects it. Sources, read in November 2026: the vendors'
pages on OpenAI compatibility (docs.anthropic.com/api/openai-sdk, ai.google.dev/gemini-api/docs/openai,
learn.microsoft.com "api version lifecycle", docs.ollama.com/api/openai-compatibility,
lmstudio.ai/docs/api/structured-output, docs.mistral.ai, docs.vllm.ai "OpenAI-compatible server",
openrouter.ai/docs "provider routing").
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """A kind of endpoint. `address` may hold a part in capitals that its owner replaces.

    `key` says whether a key is needed, `batch` whether it has the Batch API that the product speaks.
    `differs` are sentences on what is known to differ.
    """

    id: str
    name: str
    address: str
    key: str = "Required."
    models: str = ""
    api_version: bool = False
    batch: bool = False
    differs: tuple[str, ...] = ()

    @property
    def unfinished(self) -> bool:
        """Return whether the address still holds a part to replace."""
        return "RESOURCE" in self.address


_LOCAL = "Not needed, unless the server was started with one."
_LEARNED = "Parameters that a model refuses are left out after its first refusal."

PRESETS: tuple[Preset, ...] = (
    Preset(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1",
        models="gpt-4.1-mini",
        batch=True,
        differs=(
            "The token limit is sent as max_completion_tokens.",
            "Models that reason (o-series, GPT-5) take a reasoning effort, but no temperature and no token "
            "probabilities.",
            "Has the Batch API at half the price.",
        ),
    ),
    Preset(
        "azure",
        "Azure OpenAI",
        "https://RESOURCE.openai.azure.com/openai/v1",
        api_version=True,
        differs=(
            "The model is the name of your deployment, not of the model in it.",
            "The address ends with /openai/v1 and needs no API version. An older address, "
            "/openai/deployments/NAME, needs one, such as 2024-10-21.",
            "The token limit is sent as max_completion_tokens. Batch runs are not supported here.",
        ),
    ),
    Preset(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com/v1",
        models="claude-haiku-4-5",
        differs=(
            "Its OpenAI-compatible address ignores seed, token probabilities, reasoning effort and the "
            "response format: the formatter's JSON is then checked here.",
            "Temperature is at most 1. No Batch API at this address.",
        ),
    ),
    Preset(
        "gemini",
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        models="gemini-2.5-flash",
        differs=(
            "Models from 2.5 on reason and take a reasoning effort.",
            "No seed and no token probabilities. Batch runs are not supported here.",
        ),
    ),
    Preset(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        models="mistral-small-latest",
        differs=(
            "The seed has another name there (random_seed) and is not sent; no reasoning effort and no token "
            "probabilities.",
            "Its batches have an interface of their own: not supported here.",
        ),
    ),
    Preset(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        models="openai/gpt-4.1-mini",
        differs=(
            "Model names begin with their maker, such as openai/gpt-4.1-mini.",
            "What a model takes depends on the provider behind it; what it does not take is ignored.",
            "No Batch API.",
        ),
    ),
    Preset(
        "vllm",
        "vLLM",
        "http://127.0.0.1:8000/v1",
        key=_LOCAL,
        differs=(
            "Seed, token probabilities and JSON schema are taken. No Batch API.",
            "The model is the one that the server was started with (--served-model-name).",
        ),
    ),
    Preset(
        "ollama",
        "Ollama",
        "http://127.0.0.1:11434/v1",
        key=_LOCAL,
        differs=(
            "Its context is short unless set (OLLAMA_CONTEXT_LENGTH): a longer chat is cut without a word.",
            "Seed, reasoning effort and response format are taken. No Batch API.",
        ),
    ),
    Preset(
        "lmstudio",
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        key=_LOCAL,
        differs=(
            "Of the response formats it takes a JSON schema only; small models may ignore it.",
            "Start its server on the Developer tab. No Batch API.",
        ),
    ),
    Preset(
        "other",
        "Other",
        "",
        key="If the endpoint asks for one.",
        differs=("Any endpoint with OpenAI's chat completions works.", _LEARNED),
    ),
)
BY_ID = {preset.id: preset for preset in PRESETS}
