"""Regression tests in every state, without the runs that decide them."""

from typing import Any

from alignment.models.regressions import RegressionTest
from alignment.regression.core import (
    PairedVerdicts,
    count_evidence,
    decide,
    flip_share,
    regression_body,
)
from alignment.regression.queries.tests import gate_policy
from alignment.regression.services.policies import policy_in_force
from evaluation.models.prompts import PromptVersion
from tests.factories.compared_runs import Compared
from tests.factories.rater_quality import polite


def body_of(*criteria: PairedVerdicts) -> dict[str, Any]:
    """What a decided test stores, with the noise of its first criterion."""
    evidence = count_evidence(criteria)
    first = criteria[0]
    noise = {first.key: flip_share(first.champion, first.candidate)}
    decision = decide(evidence, policy=gate_policy(policy_in_force()))
    return regression_body(evidence, decision, seed=1, noise=noise)


def make_test(compared: Compared, **fields: Any) -> RegressionTest:
    """A test of version 2 of `polite`, done where it has a body."""
    candidate, _ = PromptVersion.objects.get_or_create(
        criterion=polite(), number=2, defaults={"text": "# Objective\nq", "content_hash": "c"}
    )
    body, policy = fields.get("body"), fields.get("policy") or policy_in_force()
    told = {"state": "done", "result": body["gate"], "reasons": body["reasons"]} if body else {}
    assert compared.run.chat_set is not None
    return RegressionTest.objects.create(
        chat_set=compared.run.chat_set,
        baseline_run=compared.run,
        candidate_run=compared.run,
        **{"split": "dev", "candidate": candidate, "policy": policy, **told, **fields},
    )
