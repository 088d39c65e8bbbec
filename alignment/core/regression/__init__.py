"""The regression gate: candidate against champion on the human labels."""

from alignment.core.regression.body import regression_body
from alignment.core.regression.evidence import (
    CELLS,
    ClassChange,
    CriterionEvidence,
    Evidence,
    PairedVerdicts,
    PooledEvidence,
    flip_share,
    weigh,
)
from alignment.core.regression.gate import Decision, Gate, confirm, decide
from alignment.core.regression.policy import GatePolicy
from alignment.core.regression.sight import chance_found, gate_sight
from alignment.core.regression.summary import junit_xml, markdown_summary

__all__ = [
    "CELLS",
    "ClassChange",
    "CriterionEvidence",
    "Decision",
    "Evidence",
    "Gate",
    "GatePolicy",
    "PairedVerdicts",
    "PooledEvidence",
    "chance_found",
    "confirm",
    "decide",
    "flip_share",
    "gate_sight",
    "junit_xml",
    "markdown_summary",
    "regression_body",
    "weigh",
]
