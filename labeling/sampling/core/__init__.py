"""Samples of production chats: allocation over topics, seeded sampling, and chats for human labels."""

from labeling.sampling.core.allocation import (
    SampleAllocation,
    Shortfall,
    StratumAllocation,
    TopicStratum,
    allocate,
    spread_over_criteria,
)
from labeling.sampling.core.chat_samples import (
    JUDGE,
    NO_LIMIT,
    SampledChat,
    key_limit,
    key_prefix,
    sample_chats,
    sample_keyed,
    sampling_key,
)
from labeling.sampling.core.label_samples import (
    JudgedChat,
    LabelledChat,
    LabelProbabilities,
    LabelSample,
    LabelSource,
    audit_size,
    label_probabilities,
    sample_labels,
)

__all__ = [
    "JUDGE",
    "NO_LIMIT",
    "JudgedChat",
    "LabelProbabilities",
    "LabelSample",
    "LabelSource",
    "LabelledChat",
    "SampleAllocation",
    "SampledChat",
    "Shortfall",
    "StratumAllocation",
    "TopicStratum",
    "allocate",
    "audit_size",
    "key_limit",
    "key_prefix",
    "label_probabilities",
    "sample_chats",
    "sample_keyed",
    "sample_labels",
    "sampling_key",
    "spread_over_criteria",
]
