"""API routes of evaluation, below /api/."""

from django.urls import path

from evaluation.nightly import api as nightly
from evaluation.runs import api
from evaluation.webhooks import api as webhooks

urlpatterns = [
    path("runs/", api.RunList.as_view(), name="api_runs"),
    path("runs/<int:run_id>/", api.RunDetail.as_view(), name="api_run"),
    path("runs/<int:run_id>/pause/", api.RunPause.as_view(), name="api_run_pause"),
    path("runs/<int:run_id>/resume/", api.RunResume.as_view(), name="api_run_resume"),
    path("runs/<int:run_id>/cancel/", api.RunCancel.as_view(), name="api_run_cancel"),
    path("sample-plans/", nightly.PlanList.as_view(), name="api_sample_plans"),
    path("sample-plans/<int:plan_id>/", nightly.PlanDetail.as_view(), name="api_sample_plan"),
    path("sample-plans/<int:plan_id>/pause/", nightly.PlanPause.as_view(), name="api_sample_plan_pause"),
    path("sample-plans/<int:plan_id>/resume/", nightly.PlanResume.as_view(), name="api_sample_plan_resume"),
    path("sample-plans/<int:plan_id>/preview/", nightly.PlanPreview.as_view(), name="api_sample_preview"),
    path("sample-plans/<int:plan_id>/nights/", nightly.NightList.as_view(), name="api_sample_nights"),
    path("webhooks/", webhooks.WebhookList.as_view(), name="api_webhooks"),
    path("webhooks/<int:webhook_id>/", webhooks.WebhookDetail.as_view(), name="api_webhook"),
    path("webhooks/<int:webhook_id>/secret/", webhooks.WebhookSecret.as_view(), name="api_webhook_secret"),
    path("webhooks/<int:webhook_id>/test/", webhooks.WebhookTest.as_view(), name="api_webhook_test"),
    path("webhooks/<int:webhook_id>/replay/", webhooks.WebhookReplay.as_view(), name="api_webhook_replay"),
    path(
        "webhooks/<int:webhook_id>/deliveries/",
        webhooks.WebhookDeliveries.as_view(),
        name="api_webhook_deliveries",
    ),
]
