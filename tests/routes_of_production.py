"""Routes of the production half, as tests/routes.py has them for the rest of the site."""

from tests.cases import AUTHORS, LEADS, LOOK, Case, get, post

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
API_SAMPLE_PLAN = {"name": "Nightly", "rubric": "Test rubric", "profile": "CANARY-nightly", "chats": 5}

ISSUE = {"revision": 0, "state": "acknowledged", "owner": "", "name": "No status", "note": ""}
TO_SET = {"new_set": "Issue", "split": "dev", "chats": "5"}

ROUTES_OF_PRODUCTION: dict[str, tuple[Case, ...]] = {
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
    # ---- issues
    "issues:list": (get(AUTHORS), get(AUTHORS, query={"state": "all", "owner": "nobody"})),
    "issues:csv": LOOK,
    "issues:panel": LOOK,
    "issues:find": (post(LEADS, {"first": "2026-11-02", "last": "2026-11-08"}),),
    "issues:detail": LOOK,
    "issues:change": (post(AUTHORS, ISSUE),),
    "issues:naming": (get(AUTHORS), post(AUTHORS, {"act": "cancel"}, says=200)),
    "issues:send": (post(LEADS, TO_SET, act="set"), post(LEADS, act="webhook")),
    "api_issues": (get(AUTHORS, query={"state": "all"}),),
    "api_issue": (get(AUTHORS), Case(AUTHORS, "PATCH", {"revision": 0, "state": "ignored"})),
}
