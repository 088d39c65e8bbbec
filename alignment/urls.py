"""Pages of criteria and their prompts, regression tests and alignment reports."""

from django.urls import path

from alignment.archive import views as archives
from alignment.baselines import views as baselines
from alignment.certificates import views as certificates
from alignment.chat_detail import views as chat_detail
from alignment.criterion_report import views as criterion_report
from alignment.exports import views as exports
from alignment.judge_comparison.views import flips, league
from alignment.label_planning import views as label_plan
from alignment.misalignments import views as misalignments
from alignment.personal_data import views as personal_data
from alignment.prompts.redesign import views as redesigns
from alignment.prompts.suggestions import views as suggestions
from alignment.prompts.tries import views as tries
from alignment.prompts.views import criterion as criteria
from alignment.prompts.views import example as prompt_examples
from alignment.prompts.views import prompts
from alignment.rater_knowledge import views as rater_knowledge
from alignment.regression.views import cell as regression_cells
from alignment.regression.views import policy as policies
from alignment.regression.views import start as regression_starts
from alignment.regression.views import tests as regressions
from alignment.reports import views as reports
from alignment.rubric_drafts import views as rubric_drafts
from alignment.session_scores import views as session_scores
from alignment.topic_prompt import views as topic_prompt

app_name = "alignment"
urlpatterns = [
    path("workspace/chats/topic-prompt/", topic_prompt.topic_prompt, name="topic_prompt"),
    path("workspace/chats/topic-prompt/panel/", topic_prompt.topic_prompt_panel, name="topic_prompt_panel"),
    path(
        "workspace/chats/topic-prompt/measure/",
        topic_prompt.topic_prompt_measured,
        name="topic_prompt_measure",
    ),
    path(
        "rate/<int:assignment_id>/knowledge/<str:key>/",
        rater_knowledge.rater_knowledge,
        name="rater_knowledge",
    ),
    path("rubrics/<int:rubric_id>/draft/", rubric_drafts.criterion_draft, name="criterion_draft"),
    path("criteria/", criteria.criterion_list, name="criterion_list"),
    path("criteria/<str:key>/", criteria.criterion_detail, name="criterion_detail"),
    path("criteria/<str:key>/owner/", criteria.criterion_assigned, name="criterion_assign"),
    path("criteria/<str:key>/versions/<int:number>/", criteria.prompt_version, name="prompt_version"),
    path(
        "criteria/<str:key>/versions/<int:number>/restore/", criteria.prompt_restored, name="prompt_restore"
    ),
    path("criteria/<str:key>/prompt/", prompts.prompt_edit, name="prompt_edit"),
    path("criteria/<str:key>/prompt/start/", prompts.prompt_start, name="prompt_start"),
    path("criteria/<str:key>/prompt/discard/", prompts.prompt_discard, name="prompt_discard"),
    path("criteria/<str:key>/prompt/findings/", prompts.prompt_findings, name="prompt_findings"),
    path("criteria/<str:key>/prompt/markdown/", prompts.prompt_markdown, name="prompt_markdown"),
    path("criteria/<str:key>/prompt/changes/", prompts.prompt_changes, name="prompt_changes"),
    path("criteria/<str:key>/prompt/since/", prompts.prompt_since, name="prompt_since"),
    path("criteria/<str:key>/prompt/examples/", prompt_examples.prompt_examples, name="prompt_examples"),
    path(
        "criteria/<str:key>/prompt/examples/<int:chat_id>/",
        prompt_examples.prompt_example,
        name="prompt_example",
    ),
    path(
        "criteria/<str:key>/prompt/examples/<int:index>/edit/",
        prompt_examples.prompt_example_edit,
        name="prompt_example_edit",
    ),
    path(
        "criteria/<str:key>/prompt/examples/<int:index>/remove/",
        prompt_examples.prompt_example_remove,
        name="prompt_example_remove",
    ),
    path("criteria/<str:key>/prompt/preview/", tries.prompt_preview, name="prompt_preview"),
    path("criteria/<str:key>/prompt/tries/", tries.prompt_try, name="prompt_try"),
    path("criteria/<str:key>/prompt/tries/estimate/", tries.prompt_try_estimate, name="prompt_try_estimate"),
    path("criteria/<str:key>/prompt/tries/progress/", tries.prompt_try_progress, name="prompt_try_progress"),
    path("criteria/<str:key>/prompt/tries/cancel/", tries.prompt_try_cancel, name="prompt_try_cancel"),
    path("criteria/<str:key>/prompt/chats/", tries.prompt_chats, name="prompt_chats"),
    path("criteria/<str:key>/prompt/pins/", tries.prompt_pin, name="prompt_pin"),
    path(
        "criteria/<str:key>/prompt/tries/<int:run_id>/chats/<int:chat_id>/",
        tries.prompt_try_chat,
        name="prompt_try_chat",
    ),
    path("criteria/<str:key>/prompt/suggestions/", suggestions.prompt_suggest, name="prompt_suggest"),
    path(
        "criteria/<str:key>/prompt/suggestions/<int:suggestion_id>/",
        suggestions.suggestion_detail,
        name="suggestion_detail",
    ),
    path(
        "criteria/<str:key>/prompt/suggestions/<int:suggestion_id>/<str:act>/",
        suggestions.suggestion_act,
        name="suggestion_act",
    ),
    path("criteria/<str:key>/redesign/", redesigns.redesign, name="redesign"),
    path("criteria/<str:key>/redesign/propose/", redesigns.redesign_proposed, name="redesign_propose"),
    path(
        "criteria/<str:key>/redesign/<int:proposal_id>/refuse/",
        redesigns.redesign_refused,
        name="redesign_refuse",
    ),
    path("export/", exports.export_page, name="export_page"),
    path("export/archive/", archives.archive_made, name="archive_make"),
    path("export/archive/state/", archives.archive_state, name="archive_state"),
    path("export/archive/take/", archives.archive_taken, name="archive_take"),
    path("export/archive/<int:archive_id>/", archives.archive_file, name="archive_file"),
    path("export/archive/<int:archive_id>/delete/", archives.archive_deleted, name="archive_delete"),
    path("export/<int:set_id>/<str:what>/<str:kind>/", exports.export_file, name="export_file"),
    path("reports/", reports.report_list, name="report_list"),
    path("reports/runs/<int:run_id>/", reports.report_run, name="report_run"),
    path("reports/runs/<int:run_id>/state/", reports.report_state, name="report_state"),
    path("reports/runs/<int:run_id>/update/", reports.report_update_run, name="report_update_run"),
    path("reports/runs/<int:run_id>/share/", reports.report_share_run, name="report_share_run"),
    path("reports/runs/<int:run_id>/report.csv", reports.report_table_run, name="report_table_run"),
    path("reports/runs/<int:run_id>/disagreements/", reports.disagreements, name="disagreements"),
    path("reports/runs/<int:run_id>/knowledge-gaps/", reports.gaps, name="knowledge_gaps"),
    path(
        "reports/runs/<int:run_id>/session-scores/",
        session_scores.run_session_scores,
        name="run_session_scores",
    ),
    path("reports/runs/<int:run_id>/baselines/", baselines.baselines, name="baselines"),
    path("reports/runs/<int:run_id>/labels/", label_plan.label_plan, name="label_plan"),
    path(
        "reports/runs/<int:run_id>/labels/estimate/",
        label_plan.label_draw_estimate,
        name="label_draw_estimate",
    ),
    path("reports/runs/<int:run_id>/flips/", flips.run_flips, name="run_flips"),
    path(
        "reports/runs/<int:run_id>/criteria/<str:key>/",
        criterion_report.criterion_report,
        name="criterion_report",
    ),
    path("reports/runs/<int:run_id>/<str:key>/no-verdict/", reports.no_verdict, name="no_verdict"),
    path("reports/runs/<int:run_id>/<str:key>/<str:cell>/", reports.cell, name="cell"),
    path("reports/sets/<int:set_id>/", reports.report_set, name="report_set"),
    path("reports/sets/<int:set_id>/share/", reports.report_share_set, name="report_share_set"),
    path("reports/sets/<int:set_id>/report.csv", reports.report_table_set, name="report_table_set"),
    path("reports/sets/<int:set_id>/league/", league.league, name="league"),
    path("reports/<int:report_id>/", reports.report_stored, name="report_stored"),
    path("reports/<int:report_id>/report.csv", reports.report_table, name="report_table"),
    path("regressions/", regressions.regression_list, name="regression_list"),
    path("regressions/new/", regression_starts.regression_new, name="regression_new"),
    path("regressions/new/estimate/", regression_starts.regression_estimate_part, name="regression_estimate"),
    path("regressions/policies/", policies.policy_list, name="policy_list"),
    path("regressions/policies/new/", policies.policy_edit, name="policy_edit"),
    path("regressions/<int:test_id>/", regressions.regression_detail, name="regression_detail"),
    path("regressions/<int:test_id>/topics/", regression_cells.regression_topics, name="regression_topics"),
    path("regressions/<int:test_id>/ask/", regressions.release_asked, name="regression_ask"),
    path(
        "regressions/<int:test_id>/requests/<int:request_id>/",
        regressions.release_answered,
        name="regression_answer",
    ),
    path("regressions/<int:test_id>/release/", regressions.regression_release, name="regression_release"),
    path("regressions/<int:test_id>/<str:act>/", regressions.regression_act, name="regression_act"),
    path(
        "regressions/<int:test_id>/<str:key>/<str:cell>/",
        regression_cells.regression_cell,
        name="regression_cell",
    ),
    path(
        "regressions/<int:test_id>/<str:key>/chats/<int:chat_id>/",
        regression_cells.regression_chat,
        name="regression_chat",
    ),
    path("certificates/", certificates.certificate_list, name="certificate_list"),
    path("certificates/<int:certificate_id>/", certificates.certificate_detail, name="certificate_detail"),
    path("certificates/plans/<int:plan_id>/", certificates.plan_panel, name="certificate_plan"),
    path(
        "certificates/<int:certificate_id>/revoke/",
        certificates.certificate_revoked,
        name="certificate_revoke",
    ),
    path("reports/runs/<int:run_id>/certificate/", certificates.certificate_new, name="certificate_new"),
    path("chats/<int:chat_id>/judged/", chat_detail.chat_newest, name="chat_newest"),
    path("chats/<int:chat_id>/personal-data/", personal_data.chat_personal_data, name="chat_personal_data"),
    path(
        "chats/<int:chat_id>/personal-data/export/",
        personal_data.chat_personal_data_file,
        name="chat_personal_data_file",
    ),
    path(
        "people/<int:person_id>/personal-data/",
        personal_data.person_personal_data,
        name="person_personal_data",
    ),
    path(
        "people/<int:person_id>/personal-data/export/",
        personal_data.person_personal_data_file,
        name="person_personal_data_file",
    ),
    path("runs/<int:run_id>/chats/<int:chat_id>/", chat_detail.chat, name="chat"),
    path("runs/<int:run_id>/chats/<int:chat_id>/triaged/", chat_detail.chat_triaged, name="chat_triaged"),
    path("misalignments/", misalignments.misalignment_list, name="misalignment_list"),
    path("misalignments/counts/", misalignments.misalignment_counts, name="misalignment_counts"),
    path(
        "misalignments/<int:misalignment_id>/", misalignments.misalignment_detail, name="misalignment_detail"
    ),
]
