"""The chapter of the docs that explains each page: route → page of the docs and heading ("" for its top)."""

from django.templatetags.static import static

HELP: dict[str, tuple[str, str]] = {
    "home": ("get-started", ""),
    "search": ("get-started", "search"),
    "inbox": ("review-alignment", "inbox"),
    "comments": ("review-alignment", "hand-work-over"),
    # ---- labelling
    "labeling:queue": ("label", "the-queue"),
    "labeling:rate": ("label", "the-rating-screen"),
    "labeling:read_guideline": ("label", "changed-texts"),
    "labeling:job_list": ("label", "labelling-jobs"),
    "labeling:job_new": ("label", "labelling-jobs"),
    "labeling:job_detail": ("label", "labelling-jobs"),
    "labeling:adjudication_queue": ("label", "adjudication"),
    "labeling:adjudicate": ("label", "adjudication"),
    "labeling:guideline_list": ("label", "guidelines-and-criterion-texts"),
    "labeling:guideline_detail": ("label", "guidelines-and-criterion-texts"),
    "labeling:guideline_edit": ("label", "guidelines-and-criterion-texts"),
    "labeling:criterion_text": ("label", "guidelines-and-criterion-texts"),
    "labeling:criterion_text_edit": ("label", "guidelines-and-criterion-texts"),
    "labeling:note_list": ("label", "notes"),
    "labeling:note_detail": ("label", "notes"),
    "labeling:workspace": ("label", "workspace-settings"),
    "labeling:workspace_log": ("label", "workspace-settings"),
    "labeling:set_list": ("get-started", "import"),
    "labeling:set_detail": ("get-started", "import"),
    "labeling:set_chat": ("get-started", "import"),
    "labeling:set_kind": ("label", "gold-and-calibration-sets"),
    "account_change_password": ("get-started", "create-accounts"),
    "labeling:token_list": ("reference/api", "tokens"),
    "quality:list": ("label", "quality"),
    "quality:overview": ("label", "quality"),
    "quality:pairs": ("label", "quality"),
    "quality:team": ("label", "calibration-rounds"),
    "quality:criterion": ("label", "quality"),
    "quality:set_overview": ("label", "quality"),
    "quality:set_pairs": ("label", "quality"),
    "quality:set_team": ("label", "calibration-rounds"),
    "quality:set_criterion": ("label", "quality"),
    # ---- prompts
    "alignment:criterion_list": ("write-prompts", "criteria-and-versions"),
    "alignment:criterion_detail": ("write-prompts", "criteria-and-versions"),
    "alignment:prompt_version": ("write-prompts", "criteria-and-versions"),
    "alignment:prompt_edit": ("write-prompts", "the-editor"),
    "alignment:prompt_start": ("write-prompts", "the-editor"),
    "alignment:redesign": ("write-prompts", "redesign-a-criterion"),
    # ---- runs and judges
    "evaluation:run_list": ("run-it", "runs"),
    "evaluation:run_new": ("run-it", "runs"),
    "evaluation:run_detail": ("run-it", "runs"),
    "evaluation:profile_list": ("run-it", "judge-profiles"),
    "evaluation:profile_new": ("run-it", "judge-profiles"),
    "evaluation:profile_detail": ("run-it", "judge-profiles"),
    "evaluation:profile_edit": ("run-it", "judge-profiles"),
    "evaluation:endpoint_list": ("run-it", "models-and-endpoints"),
    "evaluation:model_detail": ("run-it", "models-and-endpoints"),
    # ---- regression tests
    "alignment:regression_list": ("write-prompts", "regression-tests"),
    "alignment:regression_new": ("write-prompts", "regression-tests"),
    "alignment:regression_detail": ("write-prompts", "result"),
    "alignment:regression_cell": ("write-prompts", "result"),
    "alignment:regression_chat": ("write-prompts", "result"),
    "alignment:policy_list": ("understand/gate", ""),
    "alignment:policy_edit": ("understand/gate", ""),
    # ---- reports
    "alignment:report_list": ("review-alignment", ""),
    "alignment:report_run": ("review-alignment", "the-report"),
    "alignment:report_set": ("review-alignment", "the-report"),
    "alignment:report_stored": ("review-alignment", "current-and-shared-reports"),
    "alignment:criterion_report": ("review-alignment", "criterion-report"),
    "alignment:cell": ("review-alignment", "disagreements-and-triage"),
    "alignment:no_verdict": ("review-alignment", "status-and-next-step"),
    "alignment:disagreements": ("review-alignment", "disagreements-and-triage"),
    "alignment:misalignment_list": ("review-alignment", "disagreements-and-triage"),
    "alignment:chat": ("review-alignment", "disagreements-and-triage"),
    "alignment:knowledge_gaps": ("review-alignment", "knowledge-gaps"),
    "alignment:label_plan": ("review-alignment", "plan-labels"),
    "alignment:league": ("review-alignment", "engine-league"),
    "alignment:run_flips": ("review-alignment", "run-against-run"),
    "alignment:certificate_list": ("review-alignment", "certificates"),
    "alignment:certificate_detail": ("review-alignment", "certificates"),
}


def help_url(route: str) -> str:
    """Return the address of the chapter on a page; "" without one."""
    if route not in HELP:
        return ""
    page, heading = HELP[route]
    return static(f"docs/{page}.html") + (f"#{heading}" if heading else "")
