"""Pages of labelling: rating, jobs, adjudication, chat sets, guidelines, API tokens."""

from django.urls import path

from labeling.adjudication import views as adjudicate
from labeling.ingest import views as ingest
from labeling.jobs import views as jobs
from labeling.people.views import accounts, audit, people
from labeling.people.views import workspace as workspace_pages
from labeling.rating.views import notes, queue, rate
from labeling.rubric.views import criteria, criterion_texts, editor, guidelines
from labeling.sets import views as sets
from labeling.transfer import views as transfer

app_name = "labeling"
urlpatterns = [
    path("adjudication/", adjudicate.adjudication_queue, name="adjudication_queue"),
    path("adjudication/<int:chat_id>/<str:key>/", adjudicate.adjudicate, name="adjudicate"),
    path("adjudication/<int:chat_id>/<str:key>/names/", adjudicate.adjudicate_named, name="adjudicate_named"),
    path(
        "adjudication/<int:chat_id>/<str:key>/withdraw/",
        adjudicate.adjudicate_withdraw,
        name="adjudicate_withdraw",
    ),
    path(
        "adjudication/<int:chat_id>/<str:key>/dawid-skene/",
        adjudicate.adjudicate_likely,
        name="adjudicate_likely",
    ),
    path("queue/", queue.queue, name="queue"),
    path("jobs/", jobs.job_list, name="job_list"),
    path("jobs/new/", jobs.job_new, name="job_new"),
    path("jobs/new/size/", jobs.job_new_size, name="job_new_size"),
    path("jobs/<int:job_id>/", jobs.job_detail, name="job_detail"),
    path("jobs/<int:job_id>/close/", jobs.job_closing, name="job_close"),
    path("jobs/<int:job_id>/raters/", jobs.job_raters, name="job_raters"),
    path("jobs/<int:job_id>/start/", jobs.job_starting, name="job_start"),
    path("jobs/<int:job_id>/next/", queue.next_chat, name="next"),
    path("rate/<int:assignment_id>/", rate.rate, name="rate"),
    path("sets/", sets.set_list, name="set_list"),
    path("sets/<int:set_id>/", sets.set_detail, name="set_detail"),
    path("sets/<int:set_id>/chats/<int:chat_id>/", sets.set_chat, name="set_chat"),
    path("sets/<int:set_id>/kind/", sets.set_kind, name="set_kind"),
    path("rubrics/", editor.rubric_list, name="rubric_list"),
    path("rubrics/new/", editor.rubric_new, name="rubric_new"),
    path("rubrics/key/", criteria.criterion_key, name="criterion_key"),
    path("rubrics/criteria/<str:key>/edit/", criteria.criterion_edit, name="criterion_edit"),
    path("rubrics/<int:rubric_id>/", editor.rubric_detail, name="rubric_detail"),
    path("rubrics/<int:rubric_id>/defaults/", editor.rubric_defaults, name="rubric_defaults"),
    path("rubrics/<int:rubric_id>/rename/", editor.rubric_renamed, name="rubric_rename"),
    path("rubrics/<int:rubric_id>/criteria/new/", criteria.criterion_new, name="criterion_new"),
    path("rubrics/<int:rubric_id>/dimensions/", editor.rubric_dimension_add, name="rubric_dimension_add"),
    *(
        path(
            f"rubrics/<int:rubric_id>/dimensions/<int:dimension_id>/{act}/",
            editor.rubric_dimension_act,
            {"act": act},
            name=f"rubric_dimension_{act}",
        )
        for act in editor.ACTS
    ),
    path("imports/", transfer.import_list, name="import_list"),
    path("imports/new/", transfer.import_new, name="import_new"),
    path(
        "imports/templates/<slug:import_kind>.<slug:form>/", transfer.import_template, name="import_template"
    ),
    path("imports/<int:import_id>/", transfer.import_detail, name="import_detail"),
    path("imports/<int:import_id>/columns/", transfer.import_columns, name="import_columns"),
    path("imports/<int:import_id>/change/", transfer.import_change, name="import_change"),
    path("imports/<int:import_id>/start/", transfer.import_start, name="import_start"),
    path("imports/<int:import_id>/cancel/", transfer.import_cancel, name="import_cancel"),
    path("imports/<int:import_id>/discard/", transfer.import_discard, name="import_discard"),
    path("imports/<int:import_id>/undo/", transfer.import_undo, name="import_undo"),
    path("imports/<int:import_id>/problems.csv", transfer.import_problems, name="import_problems"),
    path("guidelines/", guidelines.guideline_list, name="guideline_list"),
    path("guidelines/preview/", guidelines.guideline_preview, name="guideline_preview"),
    path("guidelines/<int:rubric_id>/", guidelines.guideline_detail, name="guideline_detail"),
    path("guidelines/<int:rubric_id>/edit/", guidelines.guideline_edit, name="guideline_edit"),
    path("guidelines/<int:rubric_id>/<int:number>/undo/", guidelines.guideline_undone, name="guideline_undo"),
    path(
        "guidelines/<int:rubric_id>/<int:number>/decide/",
        guidelines.guideline_decide,
        name="guideline_decide",
    ),
    path("guidelines/<int:rubric_id>/read/", guidelines.read_guideline, name="read_guideline"),
    path("guidelines/criteria/<str:key>/", criterion_texts.criterion_text, name="criterion_text"),
    path(
        "guidelines/criteria/<str:key>/edit/", criterion_texts.criterion_text_edit, name="criterion_text_edit"
    ),
    path(
        "guidelines/criteria/<str:key>/evidence/",
        criterion_texts.criterion_evidence,
        name="criterion_evidence",
    ),
    path(
        "guidelines/criteria/<str:key>/preview/",
        criterion_texts.criterion_text_preview,
        name="criterion_text_preview",
    ),
    path(
        "guidelines/criteria/<str:key>/<int:number>/undo/",
        criterion_texts.criterion_text_undone,
        name="criterion_text_undo",
    ),
    path(
        "guidelines/criteria/<str:key>/<int:number>/decide/",
        criterion_texts.criterion_text_decide,
        name="criterion_text_decide",
    ),
    path("notes/", notes.note_list, name="note_list"),
    path("notes/<int:note_id>/", notes.note_detail, name="note_detail"),
    path("notes/<int:note_id>/settle/", notes.note_settled, name="note_settle"),
    path("workspace/", workspace_pages.workspace_settings, name="workspace"),
    path("workspace/chats/", ingest.incoming, name="workspace_chats"),
    path("workspace/chats/try/", ingest.incoming_try, name="workspace_chats_try"),
    path("workspace/log/", audit.workspace_log, name="workspace_log"),
    path("workspace/log/audit-log.<slug:form>", audit.workspace_log_file, name="workspace_log_file"),
    path("tokens/", workspace_pages.token_list, name="token_list"),
    path("tokens/<int:token_id>/revoke/", workspace_pages.token_revoke, name="token_revoke"),
    path("people/", people.people, name="people"),
    path("people/new/", people.person_new, name="person_new"),
    path("people/groups/", people.group_new, name="group_new"),
    path("people/groups/<int:group_id>/delete/", people.group_deleted, name="group_delete"),
    path("people/invitations/<int:invitation_id>/renew/", people.invitation_renewed, name="invite_renew"),
    path("people/invitations/<int:invitation_id>/revoke/", people.invitation_revoked, name="invite_revoke"),
    path("people/<int:person_id>/", people.person, name="person"),
    path("people/<int:person_id>/password/", people.person_password, name="person_password"),
    path("people/<int:person_id>/sessions/end/", people.person_sessions_end, name="person_sessions_end"),
    path(
        "people/<int:person_id>/sessions/<int:session_id>/end/",
        people.person_session_end,
        name="person_session_end",
    ),
    path("people/<int:person_id>/second-factor/", people.person_factor_reset, name="person_factor_reset"),
    path("people/<int:person_id>/deactivate/", people.person_deactivate, name="person_deactivate"),
    path("people/<int:person_id>/activate/", people.person_activate, name="person_activate"),
    path("join/<str:token>/", accounts.join, name="join"),
    path("welcome/", accounts.welcome, name="welcome"),
]
