"""Requests to release a tested candidate."""

from collections.abc import Collection

from django.urls import reverse

from alignment.models.regressions import RegressionTest, ReleaseRequest
from common.inbox.subjects import Subject
from labeling.models.people import User


def release_requests(test: RegressionTest) -> list[ReleaseRequest]:
    """Return the requests to release this test's candidate, newest first."""
    return list(test.requests.select_related("by", "answered_by").order_by("-pk"))


def release_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these requests whose test the user may open; an answer tells who asked."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    rows = ReleaseRequest.objects.filter(pk__in=ids).select_related(
        "regression__candidate__criterion", "regression__candidate_run__judge"
    )
    return {
        row.pk: Subject(
            title=f"{_candidate(row.regression)}, test {row.regression_id}: {_result(row)}",
            url=reverse("alignment:regression_detail", args=[row.regression_id]),
            people=(row.by_id,),
            text=row.note,
        )
        for row in rows
    }


def _result(row: ReleaseRequest) -> str:
    """Return the test's result, and the answer once there is one."""
    result = row.regression.get_result_display().lower()
    return (
        result
        if row.answer == ReleaseRequest.Answer.OPEN
        else f"{result}, {row.get_answer_display().lower()}"
    )


def _candidate(test: RegressionTest) -> str:
    if test.candidate is None:
        return f"judge {test.candidate_run.judge.name}"
    return f"{test.candidate.criterion.name} version {test.candidate.number}"
