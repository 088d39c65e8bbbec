"""API routes of the labelling side, below /api/."""

from django.urls import path

from labeling.api import exports, rater

urlpatterns = [
    path("queue/", rater.QueueApi.as_view(), name="api_queue"),
    path("assignments/<int:assignment_id>/", rater.AssignmentApi.as_view(), name="api_assignment"),
    path(
        "assignments/<int:assignment_id>/labels/<str:criterion_key>/",
        rater.LabelApi.as_view(),
        name="api_label",
    ),
    path("assignments/<int:assignment_id>/submit/", rater.SubmitApi.as_view(), name="api_submit"),
    path("assignments/<int:assignment_id>/skip/", rater.SkipApi.as_view(), name="api_skip"),
    path("sets/", exports.SetList.as_view(), name="api_sets"),
    path("sets/<int:set_id>/export/<str:what>.<str:kind>", exports.Export.as_view(), name="api_export"),
    path("labels/", exports.LabelList.as_view(), name="api_labels"),
]
