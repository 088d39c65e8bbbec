"""API routes of the rater's side, below /api/."""

from django.urls import path

from labeling import api

urlpatterns = [
    path("queue/", api.QueueApi.as_view(), name="api_queue"),
    path("assignments/<int:assignment_id>/", api.AssignmentApi.as_view(), name="api_assignment"),
    path(
        "assignments/<int:assignment_id>/labels/<str:criterion_key>/",
        api.LabelApi.as_view(),
        name="api_label",
    ),
    path("assignments/<int:assignment_id>/submit/", api.SubmitApi.as_view(), name="api_submit"),
    path("assignments/<int:assignment_id>/skip/", api.SkipApi.as_view(), name="api_skip"),
]
