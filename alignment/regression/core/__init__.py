"""Regression gate: candidate against champion on the human labels."""

from alignment.regression.core.evidence import (
    CELLS,
    ClassChange,
    CriterionEvidence,
    Evidence,
    PairedVerdicts,
    PooledEvidence,
    count_evidence,
    flip_share,
)
from alignment.regression.core.gate import Decision, Gate, confirm, decide
from alignment.regression.core.policy import RETIRED, GatePolicy
from alignment.regression.core.power import chance_found, gate_power
from alignment.regression.core.result import (
    advice_of,
    junit_problem,
    junit_xml,
    markdown_problem,
    markdown_summary,
    regression_body,
)
from alignment.regression.core.unread import UnusableAnswers, no_verdict_words, unusable_answers

__all__ = [
    "CELLS",
    "RETIRED",
    "ClassChange",
    "CriterionEvidence",
    "Decision",
    "Evidence",
    "Gate",
    "GatePolicy",
    "PairedVerdicts",
    "PooledEvidence",
    "UnusableAnswers",
    "advice_of",
    "chance_found",
    "confirm",
    "count_evidence",
    "decide",
    "flip_share",
    "gate_power",
    "junit_problem",
    "junit_xml",
    "markdown_problem",
    "markdown_summary",
    "no_verdict_words",
    "regression_body",
    "unusable_answers",
]
