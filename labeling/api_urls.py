"""API routes of the labelling side, below /api/."""

from django.urls import path

from labeling.adjudication import api as adjudication
from labeling.ingest import api as ingest
from labeling.jobs import api as jobs
from labeling.people.api import workspace
from labeling.rating.api import notes, rater
from labeling.rubric import api as guidelines
from labeling.transfer import api as exports

urlpatterns = [
    path("adjudication/", adjudication.AdjudicationQueueApi.as_view(), name="api_adjudication_queue"),
    path(
        "adjudication/<int:chat_number>/<str:criterion_key>/",
        adjudication.AdjudicateApi.as_view(),
        name="api_adjudicate",
    ),
    path(
        "sets/<int:set_id>/dawid-skene/<str:criterion_key>/",
        adjudication.DawidSkeneApi.as_view(),
        name="api_dawid_skene",
    ),
    path("jobs/", jobs.JobsApi.as_view(), name="api_jobs"),
    path("jobs/<int:job_id>/", jobs.JobApi.as_view(), name="api_job"),
    path("jobs/<int:job_id>/close/", jobs.JobCloseApi.as_view(), name="api_job_close"),
    path("jobs/<int:job_id>/raters/", jobs.JobRatersApi.as_view(), name="api_job_raters"),
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
    path("assignments/<int:assignment_id>/extend/", rater.ExtendApi.as_view(), name="api_extend"),
    path("assignments/<int:assignment_id>/skip/", rater.SkipApi.as_view(), name="api_skip"),
    path(
        "assignments/<int:assignment_id>/notes/",
        notes.AssignmentNotesApi.as_view(),
        name="api_assignment_notes",
    ),
    path(
        "assignments/<int:assignment_id>/guideline/",
        rater.GuidelineApi.as_view(),
        name="api_assignment_guideline",
    ),
    path("rubrics/", guidelines.RubricsApi.as_view(), name="api_rubrics"),
    path("rubrics/<int:rubric_id>/", guidelines.RubricDetailApi.as_view(), name="api_rubric"),
    path("criteria/<str:key>/change/", guidelines.CriterionChangeApi.as_view(), name="api_criterion_change"),
    path(
        "rubrics/<int:rubric_id>/guidelines/",
        guidelines.RubricGuidelinesApi.as_view(),
        name="api_rubric_guidelines",
    ),
    path(
        "rubrics/<int:rubric_id>/guidelines/<int:number>/undo/",
        guidelines.GuidelineUndoApi.as_view(),
        name="api_rubric_guideline_undo",
    ),
    path(
        "rubrics/<int:rubric_id>/guidelines/<int:number>/decide/",
        guidelines.GuidelineDecideApi.as_view(),
        name="api_rubric_guideline_decide",
    ),
    path(
        "criteria/<str:key>/versions/<int:number>/undo/",
        guidelines.CriterionVersionUndoApi.as_view(),
        name="api_criterion_version_undo",
    ),
    path(
        "criteria/<str:key>/versions/<int:number>/decide/",
        guidelines.CriterionVersionDecideApi.as_view(),
        name="api_criterion_version_decide",
    ),
    path(
        "criteria/<str:key>/versions/",
        guidelines.CriterionVersionsApi.as_view(),
        name="api_criterion_versions",
    ),
    path("workspace/", workspace.WorkspaceApi.as_view(), name="api_workspace"),
    path("workspace/log/", workspace.AuditApi.as_view(), name="api_workspace_log"),
    path("notes/", notes.NotesApi.as_view(), name="api_notes"),
    path("notes/<int:note_id>/settle/", notes.NoteSettleApi.as_view(), name="api_note_settle"),
    path("sets/", exports.SetList.as_view(), name="api_sets"),
    path("sets/<int:set_id>/", exports.SetApi.as_view(), name="api_set"),
    path("sets/<int:set_id>/export/<str:what>.<str:kind>", exports.Export.as_view(), name="api_export"),
    path("incoming/", ingest.IncomingApi.as_view(), name="api_incoming"),
    path("chats/", ingest.ChatsApi.as_view(), name="api_chats"),
    path("labels/", exports.LabelList.as_view(), name="api_labels"),
]
