"""Prompt versions of criteria with their state, the tests of them and their releases."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from alignment.comparison.queries.disclosure import SMALL_COUNTS_HIDDEN
from alignment.models.regressions import Policy, RegressionTest
from alignment.prompts.queries.version_metrics import Figures, VersionMetrics, version_metrics
from alignment.regression.queries.candidate_tests import counting_tests, is_in_force
from alignment.regression.queries.policy_page import policy_revised
from alignment.regression.queries.tests import changed_by_judges
from evaluation.models.prompts import Promotion, PromptVersion
from labeling.models.people import User
from labeling.models.rubric import Criterion


class VersionState(StrEnum):
    """State of a prompt version, as the status chips name it."""

    DRAFT = "draft"  # saved, never tested
    TESTED = "tested"  # its newest test is open, or no newest test on a set and split failed
    RELEASED = "released"  # in use: the champion
    RETIRED = "retired"  # was in use, or its newest test on a set and split failed


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version; `tests`, `releases` and `metrics` newest first.

    `same_as` is the first version with the same text and examples, if that is another one. Cancelled tests
    are listed but do not affect the state. `champion_since`: when today's champion was released.
    `policy_changed`: its newest decided test has a policy that is not in force. `figures` are empty unless
    requested.
    """

    prompt: PromptVersion
    state: VersionState
    tests: tuple[RegressionTest, ...]
    releases: tuple[Promotion, ...]
    same_as: int | None
    champion_since: datetime | None = None
    policy_changed: bool = False
    figures: Figures = field(default_factory=Figures)

    @property
    def number(self) -> int:
        """The version's number; 0 for an unsaved text."""
        return self.prompt.number or 0

    @property
    def waits(self) -> bool:
        """Whether the version needs a test or a release."""
        return self.state in (VersionState.DRAFT, VersionState.TESTED)

    @property
    def open_test(self) -> RegressionTest | None:
        """Its newest test that is still open."""
        return next((test for test in self.tests if test.is_open), None)

    @property
    def passed(self) -> RegressionTest | None:
        """The passed test against today's champion and under today's policy: it can be released."""
        return None if self.outdated or self.policy_changed else self._passed

    @property
    def outdated(self) -> bool:
        """Whether it passed against an earlier champion."""
        test, since = self._passed, self.champion_since
        return test is not None and since is not None and test.created_at < since

    @property
    def _passed(self) -> RegressionTest | None:
        newest = next((test for test in self.tests if _counts(test)), None)
        is_passed = newest is not None and newest.result == RegressionTest.Result.PASS
        return newest if is_passed and self.state is VersionState.TESTED else None

    @property
    def metrics(self) -> tuple[VersionMetrics, ...]:
        """Its metrics, one entry for each set and split."""
        return self.figures.rows

    @property
    def withheld(self) -> str:
        """Why some figures are withheld from the user; '' if none are."""
        return SMALL_COUNTS_HIDDEN if self.figures.few else ""

    def at(self, place: str) -> VersionMetrics | None:
        """Return its metrics on one set and split."""
        return next((one for one in self.metrics if one.place == place), None)


@dataclass(frozen=True, slots=True)
class _History:
    """Versions, releases and tests of some criteria, newest first."""

    prompts: Sequence[PromptVersion]
    releases: Sequence[Promotion]
    tests: Sequence[tuple[int, RegressionTest]]  # with the id of the version tested
    policy: Policy | None  # the newest revision


def version_rows(*, criteria: Collection[Criterion]) -> dict[int, list[VersionRow]]:
    """Return rows by criterion id, newest first, without figures; constant number of queries.

    The text of a version is fetched on first use.
    """
    history = _History(
        list(
            PromptVersion.objects.filter(criterion__in=criteria)
            .select_related("author", "base", "criterion")
            .defer("text", "base__text")
            .order_by("criterion", "-number")
        ),
        list(
            Promotion.objects.filter(criterion__in=criteria)
            .select_related("by", "version")
            .defer("version__text")
            .order_by("-id")
        ),
        _tests(criteria),
        policy_revised(),
    )
    rows: dict[int, list[VersionRow]] = {criterion.pk: [] for criterion in criteria}
    for criterion in criteria:
        own = [prompt for prompt in history.prompts if prompt.criterion_id == criterion.pk]
        rows[criterion.pk] = [_row(prompt, own, history) for prompt in own]
    return rows


def with_figures(
    rows: Sequence[VersionRow], *, of: Collection[VersionRow], user: User | AnonymousUser
) -> list[VersionRow]:
    """Add figures to the rows of `of` and to rows with the same content, as far as the user may see them.

    NB: each new label makes every version of `of` be counted again, chat by chat. Request only what is shown.
    """
    criteria = {row.prompt.criterion_id: row.prompt.criterion for row in of}
    contents = {row.prompt.content_hash for row in of}
    figures = version_metrics(list(criteria.values()), user=user, contents=contents)
    keys = [(row.prompt.criterion_id, row.prompt.content_hash) for row in rows]
    return [replace(row, figures=figures.get(key, row.figures)) for row, key in zip(rows, keys, strict=True)]


def releases_of(rows: Iterable[VersionRow]) -> list[Promotion]:
    """Return every release of these versions, newest first."""
    return sorted((one for row in rows for one in row.releases), key=lambda one: -one.pk)


def champion_of(rows: Iterable[VersionRow]) -> VersionRow | None:
    """Return the version in use."""
    return next((row for row in rows if row.state is VersionState.RELEASED), None)


def waiting_of(rows: Iterable[VersionRow]) -> VersionRow | None:
    """Return the newest version that waits for a test or a release."""
    return next((row for row in rows if row.waits), None)


def _row(prompt: PromptVersion, own: Sequence[PromptVersion], history: _History) -> VersionRow:
    tests = tuple(test for version, test in history.tests if version == prompt.pk)
    releases = tuple(one for one in history.releases if one.version_id == prompt.pk)
    newest = next((one for one in history.releases if one.criterion_id == prompt.criterion_id), None)
    decided = next((test for test in tests if test.state == RegressionTest.State.DONE), None)
    is_champion = newest is not None and newest.version_id == prompt.pk
    first = min(one.number or 0 for one in own if one.content_hash == prompt.content_hash)
    return VersionRow(
        prompt=prompt,
        state=_state(tests, releases, policy=history.policy, is_champion=is_champion),
        tests=tests,
        releases=releases,
        same_as=first if first != prompt.number else None,
        champion_since=newest.created_at if newest else None,
        policy_changed=decided is not None and not is_in_force(decided.policy, history.policy),
    )


def _state(
    tests: Sequence[RegressionTest],
    releases: Sequence[Promotion],
    *,
    policy: Policy | None,
    is_champion: bool,
) -> VersionState:
    """Return the state after the newest decision: a release, or a test after it."""
    if is_champion:
        return VersionState.RELEASED
    since = [test for test in tests if not releases or test.created_at > releases[0].created_at]
    newest = next((test for test in since if _counts(test)), None)
    if newest is None:
        return VersionState.RETIRED if releases else VersionState.DRAFT
    counting = counting_tests(since, of_prompt=True, revised=policy)
    failed = any(test.result == RegressionTest.Result.FAIL for test in counting)
    return VersionState.RETIRED if failed and not newest.is_open else VersionState.TESTED


def _counts(test: RegressionTest) -> bool:
    return test.state != RegressionTest.State.CANCELLED


def _tests(criteria: Collection[Criterion]) -> list[tuple[int, RegressionTest]]:
    """Return tests with the version each is about: the candidate, or the prompts a judge changes."""
    tests = list(
        RegressionTest.objects.filter(
            Q(candidate__criterion__in=criteria) | Q(kind=RegressionTest.Kind.JUDGE)
        )
        .select_related("chat_set", "policy", "baseline_run", "candidate_run")
        .defer("body")
        .order_by("-id")
    )
    changed = changed_by_judges([test for test in tests if test.candidate_id is None])
    pairs = [(test.candidate_id, test) for test in tests if test.candidate_id is not None]
    pairs += [(row.pk, test) for test in tests for row in changed.get(test.pk, ())]
    return sorted(pairs, key=lambda one: -one[1].pk)
