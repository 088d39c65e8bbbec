"""API routes of alignment, below /api/."""

from django.urls import path

from alignment.api import policies, quality, regressions, reports, reveal

urlpatterns = [
    path("runs/<int:run_id>/alignment_report/", reports.RunReport.as_view(), name="api_run_report"),
    path("sets/<int:set_id>/alignment_report/", reports.SetReport.as_view(), name="api_set_report"),
    path("regressions/", regressions.RegressionList.as_view(), name="api_regressions"),
    path("regressions/estimate/", regressions.RegressionEstimate.as_view(), name="api_regression_estimate"),
    path("regressions/<int:test_id>/", regressions.RegressionDetail.as_view(), name="api_regression"),
    path(
        "regressions/<int:test_id>/pause/",
        regressions.RegressionPause.as_view(),
        name="api_regression_pause",
    ),
    path(
        "regressions/<int:test_id>/resume/",
        regressions.RegressionResume.as_view(),
        name="api_regression_resume",
    ),
    path(
        "regressions/<int:test_id>/cancel/",
        regressions.RegressionCancel.as_view(),
        name="api_regression_cancel",
    ),
    path(
        "regressions/<int:test_id>/release/",
        regressions.RegressionRelease.as_view(),
        name="api_regression_release",
    ),
    path("policies/", policies.PolicyList.as_view(), name="api_policies"),
    path("sets/<int:set_id>/quality/", quality.SetQuality.as_view(), name="api_set_quality"),
    path("jobs/<int:job_id>/quality/", quality.JobQuality.as_view(), name="api_job_quality"),
    path("assignments/<int:assignment_id>/reveal/", reveal.RevealApi.as_view(), name="api_reveal"),
]
