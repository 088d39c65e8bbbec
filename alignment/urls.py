"""Pages of alignment reports and regression tests."""

from django.urls import path

from alignment.views import regressions, reports

app_name = "alignment"
urlpatterns = [
    path("reports/", reports.report_list, name="report_list"),
    path("reports/runs/<int:run_id>/", reports.report_run, name="report_run"),
    path("reports/runs/<int:run_id>/disagreements/", reports.disagreements, name="disagreements"),
    path("reports/runs/<int:run_id>/knowledge-gaps/", reports.gaps, name="knowledge_gaps"),
    path("reports/runs/<int:run_id>/<str:key>/<str:cell>/", reports.cell, name="cell"),
    path("reports/sets/<int:set_id>/", reports.report_set, name="report_set"),
    path("regressions/", regressions.regression_list, name="regression_list"),
    path("regressions/<int:test_id>/", regressions.regression_detail, name="regression_detail"),
    path("chats/<int:chat_id>/judged/", reports.chat_newest, name="chat_newest"),
    path("runs/<int:run_id>/chats/<int:chat_id>/", reports.chat, name="chat"),
]
