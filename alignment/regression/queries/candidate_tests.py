"""All tests of one candidate, and what of them requires an override before its release."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.core import GatePolicy
from alignment.regression.queries.holdout_access import holdout_warning
from alignment.regression.queries.policy_page import policy_revised
from alignment.regression.queries.tests import gate_policy
from evaluation.models.judges import JudgePrompt

# Criterion id and hash of a prompt; None stands for a whole judge.
Content = tuple[int, str] | None


@dataclass(frozen=True, slots=True)
class CandidateTest:
    """One test of a candidate.

    counts : whether it is the newest decided test on its chat set and split, or a FAIL there that no newer
        test replaced by a pass under the policy in force.
    in_force : whether its policy is the one in force.
    """

    test: RegressionTest
    counts: bool
    in_force: bool

    @property
    def stops(self) -> bool:
        """Whether its FAIL stands, so that a release needs an override."""
        return self.counts and self.test.result == RegressionTest.Result.FAIL

    @property
    def name(self) -> str:
        """The test with its chats: `regression test 7 on golden, holdout`."""
        return f"regression test {self.test.pk} on {self.test.chat_set.name}, {split_name(self.test)}"

    def as_json(self) -> dict[str, Any]:
        """Return the test for the API and `regress --json`."""
        test = self.test
        return {
            "test": test.pk,
            "kind": test.kind,
            "set": test.chat_set.name,
            "split": test.split,
            "state": test.state,
            "gate": test.result or None,
            "counts": self.counts,
            "policy": gate_policy(test.policy).label,
            "policy_in_force": self.in_force,
            "finished_at": test.finished_at.isoformat() if test.finished_at else None,
        }


def split_name(test: RegressionTest) -> str:
    """Return the split of a test; `all splits` without one."""
    return test.split or "all splits"


def is_in_force(policy: Policy, revised: Policy | None) -> bool:
    """Tell whether a policy is in force; `revised` is the newest revision, None while there is none."""
    if revised is not None:
        return policy == revised
    return gate_policy(policy) == GatePolicy()


def candidate_tests(test: RegressionTest) -> list[CandidateTest]:
    """Return every test of the same candidate, newest first; cancelled ones are excluded.

    A prompt is the same if its text and examples are, under any version number. Tests of a whole judge that
    changes the prompt belong to it. The tests of a whole judge are those of that judge, and those of each
    prompt that it changes. A constant number of queries.
    """
    contents = _changed_contents(test)
    whole = _changing(contents) if test.candidate_id else Q(candidate_run__judge=test.candidate_run.judge_id)
    rows = RegressionTest.objects.filter(
        _alone(contents) | Q(kind=RegressionTest.Kind.JUDGE) & whole
    ).exclude(state=RegressionTest.State.CANCELLED)
    rows = rows.select_related("policy", "chat_set", "candidate__criterion").defer("body", "candidate__text")
    # The caller's row stays the one shown: its counts may be hidden from this user.
    tests = [test if row.pk == test.pk else row for row in rows.order_by("-id")]
    revised = policy_revised()
    counting = counting_tests(tests, of_prompt=test.candidate_id is not None, revised=revised)
    counts = {row.pk for row in counting}
    return [CandidateTest(row, row.pk in counts, is_in_force(row.policy, revised)) for row in tests]


def counting_tests(
    tests: Iterable[RegressionTest], *, of_prompt: bool, revised: Policy | None
) -> list[RegressionTest]:
    """Return the tests that a release considers; `tests` of one candidate are newest first.

    On each chat set and split these are the newest decided test, and the newest FAIL unless a newer test
    passed there under the policy in force. So neither an inconclusive test nor a pass under another policy
    hides a FAIL.

    Of one prompt (`of_prompt`), a newer test of the prompt alone replaces a test of a whole judge, but not
    the reverse: only the former shows what the prompt does by itself. `revised` as in `is_in_force`.
    """
    found: list[RegressionTest] = []
    decided: set[tuple[tuple[int, str], bool | Content]] = set()
    # A newer FAIL, or a newer PASS under the policy in force.
    settled: set[tuple[tuple[int, str], bool | Content]] = set()
    for test in tests:
        if test.state != RegressionTest.State.DONE:
            continue
        whole, place = test.candidate_id is None, (test.chat_set_id, test.split)
        key = (place, whole if of_prompt else _content(test))
        keys = {key, (place, False)} if of_prompt and whole else {key}
        fails = test.result == RegressionTest.Result.FAIL
        if not keys & (settled if fails else decided):
            found.append(test)
        decided.add(key)
        if fails or (test.result == RegressionTest.Result.PASS and is_in_force(test.policy, revised)):
            settled.add(key)
    return found


def override_reasons(test: RegressionTest, tests: Sequence[CandidateTest] | None = None) -> tuple[str, ...]:
    """Return why a release from this test needs an override; empty if it needs none.

    tests : the candidate's tests, if the caller has them.
    """
    rows = candidate_tests(test) if tests is None else tests
    failed = [row for row in rows if row.stops and row.test.pk != test.pk]
    return (*_own_reasons(test, rows), *map(_failed, failed))


def release_answer(test: RegressionTest) -> dict[str, Any]:
    """Return what a release has to know beside the result, for the API and `regress --json`.

    Keys: the candidate's tests, why a release needs an override, warnings, and who started the test.
    """
    rows, warning = candidate_tests(test), holdout_warning(test)
    waits = test.state == RegressionTest.State.DONE and test.released_at is None
    return {
        "created_by": test.created_by.get_username() if test.created_by else None,
        "warnings": [warning] if warning else [],
        "tests": [row.as_json() for row in rows],
        "needs_override": list(override_reasons(test, rows)) if waits else [],
    }


def _own_reasons(test: RegressionTest, rows: Sequence[CandidateTest]) -> Iterable[str]:
    """Return why the pass of the test itself is not enough."""
    own = next(row for row in rows if row.test.pk == test.pk)
    if test.result != RegressionTest.Result.PASS:
        yield f"regression test {test.pk} did not pass"
        return
    if not own.in_force:
        policy = gate_policy(test.policy).label
        yield f"regression test {test.pk} passed under {policy}, which is not in force"
    for row in rows:
        if row.counts and row.test.result == RegressionTest.Result.INCONCLUSIVE and _replaces(row.test, test):
            yield f"{row.name}, is newer and inconclusive"


def _replaces(newer: RegressionTest, older: RegressionTest) -> bool:
    same_chats = (newer.chat_set_id, newer.split) == (older.chat_set_id, older.split)
    return newer.pk > older.pk and same_chats and _content(newer) == _content(older)


def _failed(row: CandidateTest) -> str:
    under = "" if row.in_force else f" under {gate_policy(row.test.policy).label}"
    return f"{row.name}, failed{under}"


def _content(test: RegressionTest) -> Content:
    """Return the content that a test of one prompt is about."""
    return (test.candidate.criterion_id, test.candidate.content_hash) if test.candidate else None


def _changed_contents(test: RegressionTest) -> list[tuple[int, str]]:
    """Return the prompts that the candidate has and the baseline has not."""
    if (content := _content(test)) is not None:
        return [content]
    before, after = (
        set(rows.values_list("criterion_id", "prompt_version__content_hash"))
        for run in (test.baseline_run, test.candidate_run)
        for rows in [JudgePrompt.objects.filter(judge=run.judge_id)]
    )
    return sorted(after - before)


def _alone(contents: Sequence[tuple[int, str]]) -> Q:
    """Select the tests of one of these prompts alone."""
    found = Q(pk__in=[])
    for criterion, digest in contents:
        found |= Q(candidate__criterion=criterion, candidate__content_hash=digest)
    return found


def _changing(contents: Sequence[tuple[int, str]]) -> Q:
    """Select the tests of a whole judge that changes one of these prompts."""
    found = Q(pk__in=[])
    for criterion, digest in contents:
        found |= Q(_has("candidate_run", criterion, digest)) & ~Q(_has("baseline_run", criterion, digest))
    return found


def _has(run: str, criterion: int, digest: str) -> Exists:
    prompts: QuerySet[JudgePrompt] = JudgePrompt.objects.filter(
        judge=OuterRef(f"{run}__judge"), criterion=criterion, prompt_version__content_hash=digest
    )
    return Exists(prompts)
