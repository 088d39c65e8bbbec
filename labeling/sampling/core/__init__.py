"""Samples of production chats: allocation over topics, seeded draws, and chats for human labels."""

from labeling.sampling.core.allocation import (
    SampleAllocation,
    Shortfall,
    StratumAllocation,
    TopicStratum,
    allocate,
    spread_over_criteria,
)
from labeling.sampling.core.draws import DrawnChat, draw, draw_key, key_prefix
from labeling.sampling.core.label_draws import (
    JudgedChat,
    LabelChances,
    LabelDraw,
    LabelledChat,
    LabelSource,
    audit_size,
    draw_labels,
    label_chances,
)

__all__ = [
    "DrawnChat",
    "JudgedChat",
    "LabelChances",
    "LabelDraw",
    "LabelSource",
    "LabelledChat",
    "SampleAllocation",
    "Shortfall",
    "StratumAllocation",
    "TopicStratum",
    "allocate",
    "audit_size",
    "draw",
    "draw_key",
    "draw_labels",
    "key_prefix",
    "label_chances",
    "spread_over_criteria",
]
