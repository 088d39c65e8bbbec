"""API routes of alignment, below /api/."""

from django.urls import path

from alignment.alerts import api as alerts
from alignment.baselines import api as baselines
from alignment.certificates import api as certificates
from alignment.criterion_report import api as criterion_report
from alignment.experiments import api as experiments
from alignment.exports import api as exports
from alignment.issues import api as issues
from alignment.judge_comparison import api as league
from alignment.label_planning import api as label_plan
from alignment.misalignments import api as misalignments
from alignment.monitoring import api as monitoring
from alignment.personal_data import api as personal_data
from alignment.prompts.api import criterion as criteria
from alignment.prompts.api import prompts
from alignment.prompts.redesign import api as redesigns
from alignment.prompts.suggestions import api as suggestions
from alignment.prompts.tries import api as tries
from alignment.rater_quality import api as quality
from alignment.regression.api import policy as policies
from alignment.regression.api import tests as regressions
from alignment.reports import api as reports
from alignment.reveal import api as reveal
from alignment.session_scores import api as session_scores
from alignment.topic_prompt import api as topic_prompt

urlpatterns = [
    path("topic-prompt/", topic_prompt.TopicPromptApi.as_view(), name="api_topic_prompt"),
    path(
        "topic-prompt/measure/",
        topic_prompt.TopicPromptMeasureApi.as_view(),
        name="api_topic_prompt_measure",
    ),
    path("personal-data/chat/", personal_data.ChatPersonalData.as_view(), name="api_chat_personal_data"),
    path(
        "personal-data/person/", personal_data.PersonPersonalData.as_view(), name="api_person_personal_data"
    ),
    path("criteria/", criteria.CriteriaApi.as_view(), name="api_criteria"),
    path("criteria/<str:key>/", criteria.CriterionApi.as_view(), name="api_criterion"),
    path("criteria/<str:key>/draft/", prompts.DraftApi.as_view(), name="api_prompt_draft"),
    path("criteria/<str:key>/lint/", prompts.LintApi.as_view(), name="api_prompt_lint"),
    path("criteria/<str:key>/prompts/", prompts.PromptVersionsApi.as_view(), name="api_prompts"),
    path(
        "criteria/<str:key>/prompts/<int:number>/",
        criteria.PromptVersionApi.as_view(),
        name="api_prompt",
    ),
    path(
        "criteria/<str:key>/prompts/<int:number>/restore/",
        criteria.PromptRestore.as_view(),
        name="api_prompt_restore",
    ),
    path("runs/<int:run_id>/alignment_report/", reports.RunReport.as_view(), name="api_run_report"),
    path(
        "runs/<int:run_id>/alignment_report/<str:key>/",
        criterion_report.CriterionReport.as_view(),
        name="api_criterion_report",
    ),
    path(
        "runs/<int:run_id>/session_scores/",
        session_scores.RunSessionScores.as_view(),
        name="api_run_session_scores",
    ),
    path(
        "runs/<int:run_id>/session_scores.csv",
        session_scores.RunSessionScoresTable.as_view(),
        name="api_run_session_scores_csv",
    ),
    path(
        "runs/<int:run_id>/export/verdicts.<str:kind>", exports.RunVerdicts.as_view(), name="api_run_verdicts"
    ),
    path("runs/<int:run_id>/baselines/", baselines.RunBaselines.as_view(), name="api_run_baselines"),
    path("runs/<int:run_id>/label_plan/", label_plan.LabelPlan.as_view(), name="api_label_plan"),
    path("runs/<int:run_id>/label_draws/", label_plan.LabelDraws.as_view(), name="api_label_draws"),
    path("reports/<int:report_id>/", reports.StoredReport.as_view(), name="api_stored_report"),
    path(
        "reports/<int:report_id>/report.csv",
        reports.StoredReportTable.as_view(),
        name="api_stored_report_csv",
    ),
    path("sets/<int:set_id>/alignment_report/", reports.SetReport.as_view(), name="api_set_report"),
    path("sets/<int:set_id>/league/", league.SetLeague.as_view(), name="api_set_league"),
    path("sets/<int:set_id>/league.csv", league.SetLeagueTable.as_view(), name="api_set_league_csv"),
    path("regressions/", regressions.RegressionList.as_view(), name="api_regressions"),
    path("regressions/estimate/", regressions.RegressionEstimate.as_view(), name="api_regression_estimate"),
    path("regressions/<int:test_id>/", regressions.RegressionDetail.as_view(), name="api_regression"),
    path(
        "regressions/<int:test_id>/pause/",
        regressions.RegressionPause.as_view(),
        name="api_regression_pause",
    ),
    path(
        "regressions/<int:test_id>/resume/",
        regressions.RegressionResume.as_view(),
        name="api_regression_resume",
    ),
    path(
        "regressions/<int:test_id>/cancel/",
        regressions.RegressionCancel.as_view(),
        name="api_regression_cancel",
    ),
    path(
        "regressions/<int:test_id>/release/",
        regressions.RegressionRelease.as_view(),
        name="api_regression_release",
    ),
    path("policies/", policies.PolicyList.as_view(), name="api_policies"),
    path("sets/<int:set_id>/quality/", quality.SetQuality.as_view(), name="api_set_quality"),
    path("jobs/<int:job_id>/quality/", quality.JobQuality.as_view(), name="api_job_quality"),
    path("criteria/<str:key>/preview/", tries.PromptPreview.as_view(), name="api_prompt_preview"),
    path("criteria/<str:key>/tries/", tries.PromptTries.as_view(), name="api_prompt_tries"),
    path("tries/<int:run_id>/", tries.PromptTry.as_view(), name="api_prompt_try"),
    path(
        "criteria/<str:key>/suggestions/",
        suggestions.CriterionSuggestions.as_view(),
        name="api_criterion_suggestions",
    ),
    path("suggestions/<int:suggestion_id>/", suggestions.SuggestionDetail.as_view(), name="api_suggestion"),
    path(
        "suggestions/<int:suggestion_id>/use/",
        suggestions.SuggestionUseApi.as_view(),
        name="api_suggestion_use",
    ),
    path("criteria/<str:key>/redesign/", redesigns.RedesignApi.as_view(), name="api_criterion_redesign"),
    path("criteria/<str:key>/lineage/", redesigns.LineageApi.as_view(), name="api_criterion_lineage"),
    path("certificates/", certificates.CertificateList.as_view(), name="api_certificates"),
    path("certificates/verify/", certificates.CertificateVerify.as_view(), name="api_certificate_verify"),
    path("certificates/keys/", certificates.CertificateKeys.as_view(), name="api_certificate_keys"),
    path(
        "certificates/<int:certificate_id>/",
        certificates.CertificateDetail.as_view(),
        name="api_certificate",
    ),
    path(
        "certificates/<int:certificate_id>/revoke/",
        certificates.CertificateRevoke.as_view(),
        name="api_certificate_revoke",
    ),
    path("assignments/<int:assignment_id>/reveal/", reveal.RevealApi.as_view(), name="api_reveal"),
    path("misalignments/", misalignments.MisalignmentList.as_view(), name="api_misalignments"),
    path(
        "misalignments/to_set/", misalignments.MisalignmentsToSet.as_view(), name="api_misalignments_to_set"
    ),
    path("misalignments/undo/", misalignments.MisalignmentUndo.as_view(), name="api_misalignment_undo"),
    path(
        "misalignments/<int:misalignment_id>/",
        misalignments.MisalignmentDetail.as_view(),
        name="api_misalignment",
    ),
    path("alerts/", alerts.AlertList.as_view(), name="api_alerts"),
    path("alerts/<int:alert_id>/", alerts.AlertDetail.as_view(), name="api_alert"),
    path(
        "alerts/<int:alert_id>/acknowledge/",
        alerts.AlertAcknowledge.as_view(),
        name="api_alert_acknowledge",
    ),
    path("alerts/<int:alert_id>/accept/", alerts.AlertAccepted.as_view(), name="api_alert_accept"),
    path("alerts/<int:alert_id>/snooze/", alerts.AlertSnooze.as_view(), name="api_alert_snooze"),
    path("alerts/<int:alert_id>/mute/", alerts.AlertMuted.as_view(), name="api_alert_mute"),
    path("alerts/<int:alert_id>/unmute/", alerts.AlertUnmuted.as_view(), name="api_alert_unmute"),
    path("issues/", issues.IssueListApi.as_view(), name="api_issues"),
    path("issues/<int:issue_id>/", issues.IssueApi.as_view(), name="api_issue"),
    path("monitoring/", monitoring.Monitoring.as_view(), name="api_monitoring"),
    path(
        "monitoring/<str:criterion_key>/",
        monitoring.MonitoringCriterion.as_view(),
        name="api_monitoring_criterion",
    ),
    path("experiments/", experiments.ExperimentList.as_view(), name="api_experiments"),
    path(
        "experiments/<path:experiment_key>/metrics",
        experiments.ExperimentMetrics.as_view(),
        name="api_experiment_metrics",
    ),
    path(
        "experiments/<path:experiment_key>/metrics.<str:form>",
        experiments.ExperimentExport.as_view(),
        name="api_experiment_export",
    ),
    path(
        "experiments/<path:experiment_key>/",
        experiments.ExperimentDetail.as_view(),
        name="api_experiment",
    ),
]
