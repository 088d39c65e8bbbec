"""Answers of the API of criteria and prompt versions."""

from typing import Any

from rest_framework import serializers

from alignment.models.regressions import RegressionTest
from alignment.prompts.queries.criterion_list import CriterionRow
from alignment.prompts.queries.sections import VersionDiff, examples_for, sections_of, version_diff
from alignment.prompts.queries.version_metrics import VersionMetrics
from alignment.prompts.queries.versions import VersionRow, releases_of
from evaluation.models.prompts import Promotion
from labeling.models.people import User


class MeasuredOutput(serializers.Serializer[Any]):
    """Agreement of judge and consensus on one split of a chat set; `ceiling` is the human ceiling.

    If chats were sampled by verdict, rates are weighted and do not follow from `confusion`.
    """

    set = serializers.CharField()
    split = serializers.CharField()
    run = serializers.IntegerField()
    judge = serializers.CharField()
    confusion = serializers.DictField(child=serializers.IntegerField())
    no_verdict = serializers.IntegerField()
    drawn_by_verdict = serializers.IntegerField()
    balanced_accuracy = serializers.DictField()
    tpr = serializers.DictField()
    tnr = serializers.DictField()
    ceiling = serializers.FloatField(allow_null=True)
    status = serializers.CharField(allow_null=True)


class VersionTestOutput(serializers.Serializer[Any]):
    """A regression test of a version; `result` is '' before the decision."""

    id = serializers.IntegerField()
    set = serializers.CharField()
    split = serializers.CharField()
    state = serializers.CharField()
    result = serializers.CharField()


class VersionOutput(serializers.Serializer[Any]):
    """A version of a prompt; `same_as` is an earlier version with the same text and examples."""

    number = serializers.IntegerField()
    state = serializers.CharField()
    origin = serializers.CharField()
    base = serializers.IntegerField(allow_null=True)
    same_as = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()
    author = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    content_hash = serializers.CharField()
    tests = VersionTestOutput(many=True)
    measured = MeasuredOutput(many=True)


class ReleaseOutput(serializers.Serializer[Any]):
    """A version that became the champion; `overridden` if the gate had not passed it."""

    version = serializers.IntegerField()
    by = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField()
    reason = serializers.CharField()
    overridden = serializers.BooleanField()


class PartOutput(serializers.Serializer[Any]):
    """A passage of the text: same, removed or added."""

    kind = serializers.CharField()
    text = serializers.CharField()


class SectionOutput(serializers.Serializer[Any]):
    """A CO-STAR section."""

    name = serializers.CharField()
    text = serializers.CharField()


class SectionChangeOutput(serializers.Serializer[Any]):
    """A changed section."""

    name = serializers.CharField()
    parts = PartOutput(many=True)


class ExampleOutput(serializers.Serializer[Any]):
    """A worked example, as in drafts; `value` null is not applicable."""

    chat = serializers.CharField()
    turns = serializers.ListField(child=serializers.IntegerField())
    value = serializers.BooleanField(allow_null=True)
    rationale = serializers.CharField()


class ExampleChangeOutput(serializers.Serializer[Any]):
    """An added, removed or changed example; `old` is the example before a change."""

    kind = serializers.CharField()
    example = ExampleOutput()
    old = ExampleOutput(allow_null=True)


class VersionDiffOutput(serializers.Serializer[Any]):
    """Changes since another version; `hidden_examples` counts those from chats you cannot see."""

    against = serializers.IntegerField()
    sections = SectionChangeOutput(many=True)
    examples = ExampleChangeOutput(many=True)
    hidden_examples = serializers.IntegerField()


class VersionDetailOutput(VersionOutput):
    """A version with its text and examples."""

    text = serializers.CharField()
    sections = SectionOutput(many=True)
    examples = ExampleOutput(many=True)
    hidden_examples = serializers.IntegerField()
    releases = ReleaseOutput(many=True)
    changes = VersionDiffOutput(allow_null=True)


class CriterionRowOutput(serializers.Serializer[Any]):
    """A criterion: its text in force, its champion, and the newest version that awaits test or release."""

    key = serializers.CharField()
    rubric = serializers.CharField()
    dimension = serializers.CharField()
    tier = serializers.CharField()
    critical = serializers.BooleanField()
    state = serializers.CharField()
    text_version = serializers.IntegerField()
    question = serializers.CharField()
    definition = serializers.CharField()
    passes_when = serializers.BooleanField()
    allow_na = serializers.BooleanField()
    champion = serializers.IntegerField(allow_null=True)
    waiting = serializers.IntegerField(allow_null=True)
    open_test = serializers.IntegerField(allow_null=True)


class CriteriaOutput(serializers.Serializer[Any]):
    """All criteria."""

    criteria = CriterionRowOutput(many=True)


class CriterionDetailOutput(CriterionRowOutput):
    """A criterion with its champion's alignment, and its releases, newest first."""

    measured = MeasuredOutput(many=True)
    releases = ReleaseOutput(many=True)


def criterion_body(row: CriterionRow) -> dict[str, Any]:
    """Return a criterion as the list shows it."""
    criterion, text = row.criterion, row.version
    waiting = row.waiting
    return {
        "key": criterion.key,
        "rubric": criterion.rubric.name,
        "dimension": criterion.dimension.key,
        "tier": criterion.tier,
        "critical": criterion.critical,
        "state": criterion.state,
        "text_version": text.number,
        "question": text.question,
        "definition": text.definition,
        "passes_when": text.passes_when,
        "allow_na": text.allow_na,
        "champion": row.champion.number if row.champion else None,
        "waiting": waiting.number if waiting else None,
        "open_test": waiting.open_test.pk if waiting and waiting.open_test else None,
    }


def criterion_detail_body(row: CriterionRow) -> dict[str, Any]:
    """Return a criterion with alignment and releases."""
    measured = row.champion.metrics if row.champion else ()
    return {
        **criterion_body(row),
        "measured": [_measured(one) for one in measured],
        "releases": [_release(one) for one in releases_of(row.versions)],
    }


def version_body(row: VersionRow) -> dict[str, Any]:
    """Return a version as the list shows it."""
    prompt = row.prompt
    return {
        "number": row.number,
        "state": row.state,
        "origin": prompt.origin,
        "base": prompt.base.number if prompt.base else None,
        "same_as": row.same_as,
        "reason": prompt.reason,
        "author": prompt.author.username if prompt.author else None,
        "created_at": prompt.created_at,
        "content_hash": prompt.content_hash,
        "tests": [_test(one) for one in row.tests],
        "measured": [_measured(one) for one in row.metrics],
    }


def version_detail_body(row: VersionRow, *, user: User, other: VersionRow | None = None) -> dict[str, Any]:
    """Return a version, and the changes since another one."""
    examples = examples_for(row.prompt, user=user)
    return {
        **version_body(row),
        "text": row.prompt.text,
        "sections": [{"name": one.name, "text": one.text} for one in sections_of(row.prompt)],
        "examples": [one.as_line() for one in examples.shown],
        "hidden_examples": examples.hidden,
        "releases": [_release(one) for one in row.releases],
        "changes": _changes(version_diff(other.prompt, row.prompt, user=user), other) if other else None,
    }


def _changes(diff: VersionDiff, other: VersionRow) -> dict[str, Any]:
    return {
        "against": other.number,
        "sections": [
            {"name": one.name, "parts": [{"kind": part.kind, "text": part.text} for part in one.parts]}
            for one in diff.sections
        ],
        "examples": [
            {
                "kind": one.kind,
                "example": one.example.as_line(),
                "old": one.old.as_line() if one.old else None,
            }
            for one in diff.examples
        ],
        "hidden_examples": diff.hidden,
    }


def _measured(one: VersionMetrics) -> dict[str, Any]:
    return {
        "set": one.run.chat_set.name if one.run.chat_set else "",
        "split": one.split,
        "run": one.run.pk,
        "judge": one.run.judge.name,
        "confusion": {"tp": one.table.tp, "fn": one.table.fn, "fp": one.table.fp, "tn": one.table.tn},
        "no_verdict": one.undecided,
        "drawn_by_verdict": one.sampled,
        **{name: estimate.as_json() for name, estimate in one.rates.items()},
        "ceiling": one.ceiling,
        "status": one.decision.status,
    }


def _test(test: RegressionTest) -> dict[str, Any]:
    return {
        "id": test.pk,
        "set": test.chat_set.name,
        "split": test.split,
        "state": test.state,
        "result": test.result,
    }


def _release(one: Promotion) -> dict[str, Any]:
    return {
        "version": one.version.number,
        "by": one.by.username if one.by else None,
        "at": one.created_at,
        "reason": one.reason,
        "overridden": one.overridden,
    }
