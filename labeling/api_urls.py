"""API routes of the labelling side, below /api/."""

from django.urls import path

from labeling.api import exports, jobs, rater

urlpatterns = [
    path("jobs/", jobs.JobsApi.as_view(), name="api_jobs"),
    path("jobs/<int:job_id>/", jobs.JobApi.as_view(), name="api_job"),
    path("jobs/<int:job_id>/close/", jobs.JobCloseApi.as_view(), name="api_job_close"),
    path("jobs/<int:job_id>/start/", jobs.JobStartApi.as_view(), name="api_job_start"),
    path("jobs/<int:job_id>/next/", jobs.NextApi.as_view(), name="api_job_next"),
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
