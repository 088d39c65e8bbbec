"""Routes of the production half, as tests/routes.py has them for the rest of the site."""

from datetime import timedelta

from django.utils import timezone

from tests.cases import AUTHORS, LEADS, LOOK, PEOPLE, Case, get, post

SAMPLE_PLAN = {
    "name": "Nightly",
    "rubric": "rubric_id",
    "starts_at": "02:00",
    "chats": 5,
    "rule": "equal",
    "minimum": 0,
    "profile": "profile_id",
    "mode": "live",
    "overlap": 1,
}
NEXT_WEEK = (timezone.localdate() + timedelta(days=7)).isoformat()
THRESHOLDS = {
    "alarm_percent": 5,
    "tolerance_points": 1,
    "baseline_nights": 28,
    "guard": 300,
    "mark_limit": 4,
    "fewest_verdicts": 100,
    "fewest_chats": 10,
}
API_SAMPLE_PLAN = {"name": "Nightly", "rubric": "Test rubric", "profile": "CANARY-nightly", "chats": 5}
EXPERIMENT = {"control": "CANARY-b", "share_0": "50", "share_1": "50", "alpha": "0.05"}

ISSUE = {"revision": 0, "state": "acknowledged", "owner": "", "name": "No status", "note": ""}
TO_SET = {"new_set": "Issue", "split": "dev", "chats": "5"}

ROUTES_OF_PRODUCTION: dict[str, tuple[Case, ...]] = {
    # ---- watching
    "metrics": (get(PEOPLE, says=404),),  # for Prometheus, which has a token
    "status": (get(LEADS),),
    # ---- topics of incoming chats
    "alignment:topic_prompt": (get(LEADS), post(LEADS, {"topics": "a: first\nb: second"})),
    "alignment:topic_prompt_panel": (get(LEADS),),
    "alignment:topic_prompt_measure": (post(LEADS),),
    "api_topic_prompt": (get(LEADS), Case(LEADS, "PATCH", {"model": "small"})),
    "api_topic_prompt_measure": (post(LEADS, says=400),),
    # ---- sample plans
    "evaluation:sample_plan_list": (get(LEADS),),
    "evaluation:sample_plan_new": (get(LEADS), post(LEADS, SAMPLE_PLAN)),
    "evaluation:sample_plan_preview": (post(LEADS, SAMPLE_PLAN, says=200),),
    "evaluation:sample_plan": (get(LEADS),),
    "evaluation:sample_plan_edit": (get(LEADS), post(LEADS, SAMPLE_PLAN)),
    "evaluation:sample_plan_act": (post(LEADS, act="pause"), post(LEADS, act="sample")),
    "evaluation:sample_night_judge": (post(LEADS),),
    "api_sample_plans": (get(LEADS), post(LEADS, API_SAMPLE_PLAN)),
    "api_sample_plan": (get(LEADS), Case(LEADS, "PATCH", {"chats": 7})),
    "api_sample_plan_pause": (post(LEADS, says=200),),
    "api_sample_plan_resume": (post(LEADS, says=200),),
    "api_sample_preview": (get(LEADS),),
    "api_sample_nights": (get(LEADS),),
    # ---- alerts
    "alerts:list": (get(AUTHORS), get(AUTHORS, query={"show": "all"})),
    "alerts:detail": (get(AUTHORS),),
    "alerts:act": (
        post(LEADS, act="acknowledge"),
        post(LEADS, {"until": NEXT_WEEK}, act="snooze"),
        post(LEADS, act="mute"),
        post(LEADS, act="unmute"),
        post(LEADS, act="accept"),
    ),
    "alerts:criterion_act": (post(LEADS, act="mute"), post(LEADS, act="unmute")),
    "alerts:settings": (get(LEADS), post(LEADS, THRESHOLDS)),
    "alerts:settings_preview": (post(LEADS, THRESHOLDS, says=200),),
    "alerts:panel": (get(AUTHORS), get(AUTHORS, query={"criterion": "polite"})),
    "alerts:plan_panel": (get(LEADS),),
    "alignment:certificate_plan": (get(LEADS),),
    "alerts:anchor_preview": (post(LEADS, {"anchor_set": "set_id", "anchors": "40"}, says=200),),
    "api_alerts": (get(AUTHORS), get(AUTHORS, query={"show": "ended"})),
    "api_alert": (get(AUTHORS),),
    "api_alert_acknowledge": (post(LEADS, says=200),),
    "api_alert_accept": (post(LEADS, says=200),),
    "api_alert_snooze": (post(LEADS, {"until": NEXT_WEEK}, says=200),),
    "api_alert_mute": (post(LEADS, says=200),),
    "api_alert_unmute": (post(LEADS, says=200),),
    # ---- experiments
    "experiments:list": LOOK,
    "experiments:detail": (get(AUTHORS), get(AUTHORS, query={"criterion": "polite", "variant": "none"})),
    "experiments:settings": (get(LEADS), post(LEADS, EXPERIMENT)),
    "api_experiments": LOOK,
    "api_experiment": (get(AUTHORS), Case(LEADS, "PATCH", {"alpha": 0.1})),
    "api_experiment_metrics": (get(AUTHORS), get(AUTHORS, query={"cursor": "0", "page_size": 5})),
    "api_experiment_export": (get(AUTHORS, form="csv"),),
    # ---- issues
    "issues:list": (get(AUTHORS), get(AUTHORS, query={"state": "all", "owner": "nobody"})),
    "issues:csv": LOOK,
    "issues:panel": LOOK,
    "issues:find": (post(LEADS, {"first": "2026-11-02", "last": "2026-11-08"}),),
    "issues:grouping": (post(LEADS, {"embedding_model": "", "endpoint": ""}),),
    "issues:detail": LOOK,
    "issues:change": (post(AUTHORS, ISSUE),),
    "issues:naming": (get(AUTHORS), post(AUTHORS, {"act": "cancel"}, says=200)),
    "issues:send": (post(LEADS, TO_SET, act="set"), post(LEADS, act="webhook")),
    "api_issues": (get(AUTHORS, query={"state": "all"}),),
    "api_issue": (get(AUTHORS), Case(AUTHORS, "PATCH", {"revision": 0, "state": "ignored"})),
}
