"""Pages of criteria and their prompts, regression tests and alignment reports."""

from django.urls import path

from alignment.views import (
    criteria,
    policies,
    prompts,
    redesigns,
    regression_cells,
    regression_starts,
    regressions,
    reports,
    suggestions,
    tries,
)

app_name = "alignment"
urlpatterns = [
    path("criteria/", criteria.criterion_list, name="criterion_list"),
    path("criteria/<str:key>/", criteria.criterion_detail, name="criterion_detail"),
    path("criteria/<str:key>/versions/<int:number>/", criteria.prompt_version, name="prompt_version"),
    path("criteria/<str:key>/prompt/", prompts.prompt_edit, name="prompt_edit"),
    path("criteria/<str:key>/prompt/preview/", tries.prompt_preview, name="prompt_preview"),
    path("criteria/<str:key>/prompt/tries/", tries.prompt_try, name="prompt_try"),
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
    path("reports/", reports.report_list, name="report_list"),
    path("reports/runs/<int:run_id>/", reports.report_run, name="report_run"),
    path("reports/runs/<int:run_id>/disagreements/", reports.disagreements, name="disagreements"),
    path("reports/runs/<int:run_id>/knowledge-gaps/", reports.gaps, name="knowledge_gaps"),
    path("reports/runs/<int:run_id>/<str:key>/<str:cell>/", reports.cell, name="cell"),
    path("reports/sets/<int:set_id>/", reports.report_set, name="report_set"),
    path("regressions/", regressions.regression_list, name="regression_list"),
    path("regressions/new/", regression_starts.regression_new, name="regression_new"),
    path("regressions/policies/", policies.policy_list, name="policy_list"),
    path("regressions/<int:test_id>/", regressions.regression_detail, name="regression_detail"),
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
    path("chats/<int:chat_id>/judged/", reports.chat_newest, name="chat_newest"),
    path("runs/<int:run_id>/chats/<int:chat_id>/", reports.chat, name="chat"),
]
