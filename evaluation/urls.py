"""Pages of judge profiles, runs and verdicts."""

from django.urls import path

from evaluation.connections import views as connections
from evaluation.endpoints import views as endpoints
from evaluation.judges import views as profiles
from evaluation.nightly import views as nightly
from evaluation.runs.views import runs, starts
from evaluation.webhooks import views as webhooks

app_name = "evaluation"
urlpatterns = [
    path("profiles/", profiles.profile_list, name="profile_list"),
    path("profiles/new/", profiles.profile_new, name="profile_new"),
    path("profiles/default/<int:endpoint_id>/", profiles.profile_endpoint, name="profile_endpoint"),
    path("profiles/<int:profile_id>/", profiles.profile_detail, name="profile_detail"),
    path("profiles/<int:profile_id>/edit/", profiles.profile_edit, name="profile_edit"),
    path("profiles/<int:profile_id>/<str:act>/", profiles.profile_act, name="profile_act"),
    path("models/", connections.endpoint_list, name="endpoint_list"),
    path("models/endpoints/new/", connections.endpoint_new, name="endpoint_new"),
    path("models/endpoints/<int:endpoint_id>/", connections.endpoint_detail, name="endpoint_detail"),
    path("models/endpoints/<int:endpoint_id>/edit/", connections.endpoint_edit, name="endpoint_edit"),
    path("models/endpoints/<int:endpoint_id>/<str:act>/", connections.endpoint_act, name="endpoint_act"),
    path("models/test/", endpoints.model_test, name="model_test"),
    path("models/<int:model_id>/", endpoints.model_detail, name="model_detail"),
    path("models/<int:model_id>/<str:act>/", endpoints.model_act, name="model_act"),
    path("runs/", runs.run_list, name="run_list"),
    path("runs/new/", starts.run_new, name="run_new"),
    path("runs/new/estimate/", starts.run_estimate, name="run_estimate"),
    path("runs/<int:run_id>/", runs.run_detail, name="run_detail"),
    path("runs/<int:run_id>/engine/", runs.run_engine, name="run_engine"),
    path("runs/<int:run_id>/<str:act>/", runs.run_act, name="run_act"),
    path("sampling/", nightly.plan_list, name="sample_plan_list"),
    path("sampling/new/", nightly.plan_new, name="sample_plan_new"),
    path("sampling/preview/", nightly.preview, name="sample_plan_preview"),
    path("sampling/<int:plan_id>/", nightly.plan_detail, name="sample_plan"),
    path("sampling/<int:plan_id>/edit/", nightly.plan_edit, name="sample_plan_edit"),
    path(
        "sampling/<int:plan_id>/nights/<int:draw_id>/judge/", nightly.night_judge, name="sample_night_judge"
    ),
    path("sampling/<int:plan_id>/<str:act>/", nightly.plan_act, name="sample_plan_act"),
    path("webhooks/", webhooks.webhook_list, name="webhook_list"),
    path("webhooks/new/", webhooks.webhook_new, name="webhook_new"),
    path("webhooks/<int:webhook_id>/", webhooks.webhook_detail, name="webhook_detail"),
    path("webhooks/<int:webhook_id>/edit/", webhooks.webhook_edit, name="webhook_edit"),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/",
        webhooks.webhook_delivery,
        name="webhook_delivery",
    ),
    path("webhooks/<int:webhook_id>/<str:act>/", webhooks.webhook_act, name="webhook_act"),
]
