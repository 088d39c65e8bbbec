"""API routes of the rater's side, below /api/."""

from django.urls import path

from labeling.api import rater

urlpatterns = [
    path("queue/", rater.QueueApi.as_view(), name="api_queue"),
    path("assignments/<int:assignment_id>/", rater.AssignmentApi.as_view(), name="api_assignment"),
    path(
        "assignments/<int:assignment_id>/labels/<str:criterion_key>/",
        rater.LabelApi.as_view(),
        name="api_label",
    ),
    path("assignments/<int:assignment_id>/submit/", rater.SubmitApi.as_view(), name="api_submit"),
    path("assignments/<int:assignment_id>/extend/", rater.ExtendApi.as_view(), name="api_extend"),
    path("assignments/<int:assignment_id>/skip/", rater.SkipApi.as_view(), name="api_skip"),
]
