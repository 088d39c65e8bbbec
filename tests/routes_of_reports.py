"""Routes of alignment reports, what follows from them, and webhooks; who may use them."""

from tests.cases import API_DRAW, AUTHORS, DRAW, LEADS, LOOK, NOBODY, TO_SET, WEBHOOK, Case, get, post

ROUTES_OF_REPORTS: dict[str, tuple[Case, ...]] = {
    # ---- reports
    "alignment:report_list": LOOK,
    "alignment:report_run": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "alignment:report_set": LOOK,
    "alignment:report_state": LOOK,
    "alignment:report_update_run": (post(AUTHORS), post(LEADS, run_id="try_id")),
    "alignment:report_share_run": (post(AUTHORS), post(LEADS, run_id="try_id")),
    "alignment:report_share_set": (post(AUTHORS),),
    "alignment:report_table_run": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "alignment:report_table_set": LOOK,
    "alignment:criterion_report": LOOK,
    "alignment:run_session_scores": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "api_run_session_scores": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "api_run_session_scores_csv": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "api_run_verdicts": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "alignment:baselines": (
        get(AUTHORS, says=302),
        get(LEADS, says=302, run_id="try_id"),
        post(AUTHORS),
    ),
    "api_run_baselines": (get(AUTHORS), get(LEADS, run_id="try_id"), post(AUTHORS)),
    "alignment:export_page": (
        get(AUTHORS),
        get(AUTHORS, query={"set": "set_id", "run": "run_id"}),
        get(NOBODY, query={"set": "no_set"}),
    ),
    "alignment:export_file": (
        get(AUTHORS),
        get(AUTHORS, what="verdicts", query={"run": "run_id"}),
        get(AUTHORS, what="label_studio", kind="zip"),
        get(LEADS, what="revisions"),
        get(NOBODY, what="labels", kind="zip"),
    ),
    "alignment:archive_make": (post(LEADS),),
    "alignment:archive_state": (get(LEADS),),
    "alignment:archive_file": (get(LEADS),),
    "alignment:archive_delete": (post(LEADS),),
    "alignment:archive_take": (post(LEADS),),
    "alignment:league": (
        get(AUTHORS),
        get(AUTHORS, query={"run": "run_id"}),
        get(NOBODY, query={"run": "paused_run"}),
    ),
    "alignment:label_plan": (
        get(LEADS),
        get(LEADS, query={"criterion": "key", "split": "dev"}),
        post(LEADS, DRAW, says=200),  # refused: every chat has labels
    ),
    "alignment:label_draw_estimate": (get(LEADS), get(LEADS, query={"criteria": "key"})),
    "alignment:disagreements": LOOK,
    "alignment:knowledge_gaps": LOOK,
    "alignment:misalignment_list": (
        get(AUTHORS),
        get(AUTHORS, query={"state": "all", "item": "misalignment_id"}),
    ),
    "alignment:misalignment_counts": (get(AUTHORS), get(AUTHORS, query={"state": "all"})),
    "alignment:misalignment_detail": (get(AUTHORS), get(LEADS, misalignment_id="held_misalignment")),
    "api_misalignments": (get(AUTHORS, query={"state": "all"}),),
    "api_misalignment": (
        get(AUTHORS),
        Case(AUTHORS, "PATCH", {"revision": 0, "cause": "judge"}),
    ),
    "api_misalignment_undo": (post(AUTHORS, says=409),),  # nothing is left to take back
    "api_misalignments_to_set": (post(LEADS, TO_SET, says=200),),
    "alignment:cell": LOOK,
    "alignment:no_verdict": LOOK,
    "alignment:run_flips": (get(AUTHORS), get(NOBODY, query={"with": "paused_run"})),
    "alignment:chat_newest": LOOK,
    "alignment:chat": (
        get(AUTHORS),
        get(LEADS, chat_id="holdout_chat"),
        get(LEADS, run_id="try_id"),
    ),
    "alignment:chat_triaged": (
        get(AUTHORS, query={"criterion": "key"}),
        get(LEADS, query={"criterion": "key"}, chat_id="holdout_chat"),
    ),
    "api_run_report": (get(AUTHORS), post(AUTHORS)),
    "api_set_report": (get(AUTHORS), post(AUTHORS)),
    "api_criterion_report": LOOK,
    "api_label_plan": (get(LEADS),),
    "api_label_draws": (post(LEADS, API_DRAW, says=400),),
    "api_set_league": LOOK,
    "api_set_league_csv": LOOK,
    "alignment:report_stored": (get(AUTHORS), get(LEADS, report_id="holdout_report")),
    "alignment:report_table": (get(AUTHORS), get(LEADS, report_id="holdout_report")),
    "api_stored_report": (get(AUTHORS), get(LEADS, report_id="holdout_report")),
    "api_stored_report_csv": (get(AUTHORS), get(LEADS, report_id="holdout_report")),
    # ---- monitoring
    "monitoring:overview": (get(AUTHORS), get(AUTHORS, query={"step": "day", "weeks": "4"})),
    "monitoring:rates_csv": LOOK,
    "monitoring:home_panel": (get(LEADS),),
    "monitoring:criterion": (get(AUTHORS), get(AUTHORS, query={"point": "nonsense", "topic": "nonsense"})),
    "monitoring:criterion_csv": LOOK,
    "api_monitoring": LOOK,
    "api_monitoring_criterion": LOOK,
    # ---- certificates
    "alignment:certificate_list": LOOK,
    "alignment:certificate_detail": LOOK,
    "alignment:certificate_new": (post(LEADS, {"days": 90}),),
    "alignment:certificate_revoke": (post(LEADS, {"reason": "No longer."}),),
    "api_certificates": (get(AUTHORS), post(LEADS, {"run": "run_id", "split": "dev"}, says=409)),
    "api_certificate": LOOK,
    "api_certificate_revoke": (post(LEADS, {"reason": "No longer."}),),
    "api_certificate_verify": (post(AUTHORS, {"body": {}, "signature": "none"}, says=200),),
    "api_certificate_keys": LOOK,
    # ---- webhooks
    "evaluation:webhook_list": (get(LEADS),),
    "evaluation:webhook_new": (get(LEADS), post(LEADS, WEBHOOK, says=200)),  # it shows the secret
    "evaluation:webhook_detail": (get(LEADS), get(LEADS, query={"state": "waiting"})),
    "evaluation:webhook_edit": (get(LEADS), post(LEADS, WEBHOOK)),
    "evaluation:webhook_delivery": (get(LEADS),),
    "evaluation:webhook_act": (
        post(LEADS, act="test"),
        post(LEADS, {"event": "event_id"}, act="again"),
        post(LEADS, {"since": "2026-01-01T00:00", "until": "2100-01-01T00:00"}, act="replay"),
        post(LEADS, act="secret", says=200),
        *(post(LEADS, act=act) for act in ("off", "on", "remove")),
    ),
    # A token without the right to see the holdout must not get it sent either.
    "api_webhooks": (
        get(LEADS, webhook_id="holdout_webhook"),
        post(LEADS, WEBHOOK | {"kinds": ["verdicts.stored"]}, says=201, webhook_id="holdout_webhook"),
    ),
    "api_webhook": (
        get(LEADS, webhook_id="holdout_webhook"),
        Case(LEADS, "PATCH", {"active": False}, {"webhook_id": "holdout_webhook"}),
        Case(LEADS, "DELETE", args={"webhook_id": "holdout_webhook"}, says=409),  # it is on
    ),
    "api_webhook_secret": (post(LEADS, webhook_id="holdout_webhook"),),
    "api_webhook_test": (post(LEADS, says=202, webhook_id="holdout_webhook"),),
    "api_webhook_replay": (post(LEADS, {"event": "event_id"}, says=202, webhook_id="holdout_webhook"),),
    "api_webhook_deliveries": (
        get(LEADS, webhook_id="holdout_webhook"),
        get(LEADS, query={"state": "waiting"}, webhook_id="holdout_webhook"),
    ),
}
