"""Prompt versions of criteria with their state, the tests of them and their releases."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from alignment.comparison.queries.disclosure import CONCEALED
from alignment.models.regressions import RegressionTest
from alignment.prompts.queries.version_metrics import Figures, Measured, measured
from alignment.regression.queries.changed_prompts import changed_by_judges
from evaluation.models.prompts import Promotion, PromptVersion
from labeling.models.people import User
from labeling.models.rubric import Criterion


class VersionState(StrEnum):
    """How far a version has come; a word of the status chips."""

    DRAFT = "draft"  # saved, never tested
    CANDIDATE = "candidate"  # its newest test goes on or did not fail, and it is not released
    CHAMPION = "champion"
    RETIRED = "retired"  # was champion, or its newest test ended FAIL


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version; `tests`, `releases` and `measured` newest first.

    `same_as` is the first version of the same text and examples, where that is another one. A test that was
    cancelled is listed and says nothing about the state. `champion_since` is when the criterion's champion of
    today was released. `figures` are empty where they were not asked for.
    """

    prompt: PromptVersion
    state: VersionState
    tests: tuple[RegressionTest, ...]
    releases: tuple[Promotion, ...]
    same_as: int | None
    champion_since: datetime | None = None
    figures: Figures = field(default_factory=Figures)

    @property
    def number(self) -> int:
        """Saved versions have one."""
        return self.prompt.number or 0

    @property
    def waits(self) -> bool:
        """Whether the next step with it is a test or a release."""
        return self.state in (VersionState.DRAFT, VersionState.CANDIDATE)

    @property
    def open_test(self) -> RegressionTest | None:
        """The newest test of it that goes on."""
        return next((test for test in self.tests if test.is_open), None)

    @property
    def passed(self) -> RegressionTest | None:
        """The test that it waits for a release with: against the champion of today."""
        return None if self.outdated else self._passed

    @property
    def outdated(self) -> bool:
        """Whether it passed against a champion that has been replaced since."""
        test, since = self._passed, self.champion_since
        return test is not None and since is not None and test.created_at < since

    @property
    def _passed(self) -> RegressionTest | None:
        newest = next((test for test in self.tests if _counts(test)), None)
        is_passed = newest is not None and newest.result == RegressionTest.Result.PASS
        return newest if is_passed and self.state is VersionState.CANDIDATE else None

    @property
    def measured(self) -> tuple[Measured, ...]:
        """What it was measured to be."""
        return self.figures.rows

    @property
    def kept_back(self) -> str:
        """Why the user is not told some figures; '' where nothing is kept back."""
        return CONCEALED if self.figures.few else ""

    def at(self, place: str) -> Measured | None:
        """What it was measured to be on this set and split."""
        return next((one for one in self.measured if one.place == place), None)


@dataclass(frozen=True, slots=True)
class _Known:
    """Everything about some criteria's versions, newest first."""

    prompts: Sequence[PromptVersion]
    releases: Sequence[Promotion]
    tests: Sequence[tuple[int, RegressionTest]]  # with the id of the version tested


def version_rows(*, criteria: Collection[Criterion]) -> dict[int, list[VersionRow]]:
    """By criterion id, newest first, without figures; the number of queries does not depend on versions.

    A version's text is fetched where it is read.
    """
    known = _Known(
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
    )
    found: dict[int, list[VersionRow]] = {criterion.pk: [] for criterion in criteria}
    for criterion in criteria:
        own = [prompt for prompt in known.prompts if prompt.criterion_id == criterion.pk]
        found[criterion.pk] = [_row(prompt, own, known) for prompt in own]
    return found


def with_figures(
    rows: Sequence[VersionRow], *, of: Collection[VersionRow], user: User | AnonymousUser
) -> list[VersionRow]:
    """The same rows; those of `of`, and what says the same, with what the user may be told of their figures.

    NB: after each label every version of `of` is counted anew, chat by chat: ask for what is shown.
    """
    criteria = {row.prompt.criterion_id: row.prompt.criterion for row in of}
    contents = {row.prompt.content_hash for row in of}
    found = measured(list(criteria.values()), user=user, contents=contents)
    keys = [(row.prompt.criterion_id, row.prompt.content_hash) for row in rows]
    return [replace(row, figures=found.get(key, row.figures)) for row, key in zip(rows, keys, strict=True)]


def releases_of(rows: Iterable[VersionRow]) -> list[Promotion]:
    """Every release of a criterion's versions, newest first."""
    return sorted((one for row in rows for one in row.releases), key=lambda one: -one.pk)


def champion_of(rows: Iterable[VersionRow]) -> VersionRow | None:
    """The version that the judge is asked with."""
    return next((row for row in rows if row.state is VersionState.CHAMPION), None)


def waiting_of(rows: Iterable[VersionRow]) -> VersionRow | None:
    """The newest version that waits for a test or a release."""
    return next((row for row in rows if row.waits), None)


def _row(prompt: PromptVersion, own: Sequence[PromptVersion], known: _Known) -> VersionRow:
    tests = tuple(test for version, test in known.tests if version == prompt.pk)
    releases = tuple(one for one in known.releases if one.version_id == prompt.pk)
    newest = next((one for one in known.releases if one.criterion_id == prompt.criterion_id), None)
    first = min(one.number or 0 for one in own if one.content_hash == prompt.content_hash)
    return VersionRow(
        prompt=prompt,
        state=_state(tests, releases, is_champion=newest is not None and newest.version_id == prompt.pk),
        tests=tests,
        releases=releases,
        same_as=first if first != prompt.number else None,
        champion_since=newest.created_at if newest else None,
    )


def _state(
    tests: Sequence[RegressionTest], releases: Sequence[Promotion], *, is_champion: bool
) -> VersionState:
    """The newest thing that was decided about it: a release, or a test after that."""
    if is_champion:
        return VersionState.CHAMPION
    since = [test for test in tests if not releases or test.created_at > releases[0].created_at]
    newest = next((test for test in since if _counts(test)), None)
    if newest is None:
        return VersionState.RETIRED if releases else VersionState.DRAFT
    failed = newest.result == RegressionTest.Result.FAIL
    return VersionState.RETIRED if failed else VersionState.CANDIDATE


def _counts(test: RegressionTest) -> bool:
    return test.state != RegressionTest.State.CANCELLED


def _tests(criteria: Collection[Criterion]) -> list[tuple[int, RegressionTest]]:
    """Tests with the version each is about: its candidate, or what a whole judge changes; three queries."""
    tests = list(
        RegressionTest.objects.filter(
            Q(candidate__criterion__in=criteria) | Q(kind=RegressionTest.Kind.JUDGE)
        )
        .select_related("chat_set", "baseline_run", "candidate_run")
        .defer("body")
        .order_by("-id")
    )
    changed = changed_by_judges([test for test in tests if test.candidate_id is None])
    found = [(test.candidate_id, test) for test in tests if test.candidate_id is not None]
    found += [(row.pk, test) for test in tests for row in changed.get(test.pk, ())]
    return sorted(found, key=lambda one: -one[1].pk)
