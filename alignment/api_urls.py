"""API routes of alignment, below /api/."""

from django.urls import path

from alignment.api import prompts, quality, reports, reveal

urlpatterns = [
    path("criteria/<str:key>/draft/", prompts.DraftApi.as_view(), name="api_prompt_draft"),
    path("criteria/<str:key>/lint/", prompts.LintApi.as_view(), name="api_prompt_lint"),
    path("criteria/<str:key>/prompts/", prompts.NewPromptApi.as_view(), name="api_prompts"),
    path("runs/<int:run_id>/alignment_report/", reports.RunReport.as_view(), name="api_run_report"),
    path("sets/<int:set_id>/alignment_report/", reports.SetReport.as_view(), name="api_set_report"),
    path("sets/<int:set_id>/quality/", quality.SetQuality.as_view(), name="api_set_quality"),
    path("jobs/<int:job_id>/quality/", quality.JobQuality.as_view(), name="api_job_quality"),
    path("assignments/<int:assignment_id>/reveal/", reveal.RevealApi.as_view(), name="api_reveal"),
]
