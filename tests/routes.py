"""Every route of the site and who may use it: one row a route, by name.

A new route needs a row in `ROUTES` (and, for an argument that no route had so far, a value in
`tests/world.py`). `test_access` then tries it as each of the people, and `test_blind` looks for leaks.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from tests.cases import (
    ADMIN,
    ANSWER,
    API_TEST,
    AUTHORS,
    CRITERION,
    DECISION,
    GUIDELINE,
    JOB,
    JOIN,
    LEADS,
    LIMITS,
    LOOK,
    NEW_PASSWORD,
    NOBODY,
    NOTE,
    NOTED,
    OTHER,
    PEOPLE,
    PROFILE,
    RATER,
    RATERS,
    RUN,
    SETTLE,
    SIGNED_IN,
    TEST,
    TEXT,
    TRY,
    Case,
    get,
    post,
)
from tests.routes_of_accounts import ROUTES_OF_ACCOUNTS
from tests.routes_of_help import ROUTES_OF_HELP
from tests.routes_of_production import ROUTES_OF_PRODUCTION
from tests.routes_of_reports import ROUTES_OF_REPORTS

ROUTES: dict[str, tuple[Case, ...]] = {
    **ROUTES_OF_REPORTS,
    **ROUTES_OF_ACCOUNTS,
    **ROUTES_OF_HELP,
    **ROUTES_OF_PRODUCTION,
    # ---- site
    "home": (get(SIGNED_IN),),
    "home_set_up": (post(LEADS, {"hide": ""}), post(LEADS, {"show": ""})),
    "account_login": (get(PEOPLE),),
    "account_logout": (post(SIGNED_IN),),
    "account_inactive": (get(PEOPLE),),
    "account_change_password": (get(SIGNED_IN), post(SIGNED_IN, NEW_PASSWORD)),
    "account_reset_password": (get(PEOPLE),),
    "account_reset_password_done": (get(PEOPLE),),
    "account_reset_password_from_key": (get(PEOPLE, key="reset_key", says=302),),
    "labeling:join": (get(PEOPLE), post(("anonymous",), JOIN)),
    "labeling:welcome": (get(PEOPLE, says=302),),  # there are accounts: to the sign-in
    "healthz": (get(PEOPLE),),
    "readyz": (get(PEOPLE),),
    "schema": (get(SIGNED_IN),),
    "api_docs": (get(SIGNED_IN),),
    "api_form_draft": (
        get(SIGNED_IN, query={"key": "/workspace/"}),
        Case(SIGNED_IN, "PUT", {"key": "/workspace/", "values": {}, "base": "a", "revision": 0}),
        Case(SIGNED_IN, "DELETE", query={"key": "/workspace/"}),
    ),
    # ---- inbox
    "inbox": (get(SIGNED_IN),),
    "inbox_counts": (get(SIGNED_IN),),
    "inbox_read_all": (post(SIGNED_IN),),
    "inbox_mail": (post(SIGNED_IN, {"by_mail": "on"}),),
    "inbox_open": (post(LEADS),),
    "comments": (get(AUTHORS), post(AUTHORS, {"text": "Why?"}), get(LEADS, subject="held_thread")),
    # ---- search
    "search": (get(SIGNED_IN), get(SIGNED_IN, query={"q": "chat"}), get(SIGNED_IN, query={"kind": "runs"})),
    "search_hits": (get(SIGNED_IN), get(SIGNED_IN, query={"q": "chat"})),
    # ---- raters
    "labeling:queue": (get(RATERS),),
    "labeling:next": (post(RATERS), post(NOBODY, job_id="foreign_job")),
    "labeling:rate": (
        get(RATER),
        get(OTHER, assignment_id="foreign_assignment"),
        *(get(RATER, assignment_id=one) for one in ("submitted_assignment", "closed_assignment")),
        get(RATER, assignment_id="calibration_assignment"),
        *(get(RATER, assignment_id=one, says=302) for one in ("skipped_assignment", "lost_assignment")),
    ),
    "alignment:rater_knowledge": (
        get(RATER),
        get(RATER, query={"q": "refund"}),
        get(OTHER, assignment_id="foreign_assignment"),
        *(get(RATER, assignment_id=one) for one in ("submitted_assignment", "calibration_assignment")),
        *(get(NOBODY, assignment_id=one) for one in ("skipped_assignment", "lost_assignment")),
    ),
    "api_queue": (get(RATERS),),
    "api_assignment": (
        get(RATER),
        get(OTHER, assignment_id="foreign_assignment"),
        *(get(RATER, assignment_id=one) for one in ("submitted_assignment", "closed_assignment")),
        *(get(RATER, assignment_id=one) for one in ("calibration_assignment", "skipped_assignment")),
        get(RATER, assignment_id="lost_assignment"),
    ),
    "api_label": (
        Case(RATER, "PUT", ANSWER),
        Case(RATER, "DELETE"),
        Case(OTHER, "PUT", ANSWER, {"assignment_id": "foreign_assignment"}),
    ),
    "api_submit": (
        post(RATER, says=409),  # not all is answered yet
        post(RATER, assignment_id="submitted_assignment"),
        post(OTHER, assignment_id="foreign_assignment"),
    ),
    "api_skip": (
        post(RATER, {"reason": "too_long"}),
        post(OTHER, {"reason": "too_long"}, assignment_id="foreign_assignment", says=409),  # submitted
    ),
    "api_extend": (post(RATER), post(OTHER, assignment_id="foreign_assignment", says=409)),
    "api_reveal": (
        post(NOBODY),
        post(RATER, assignment_id="submitted_assignment"),
        post(OTHER, assignment_id="foreign_assignment"),
    ),
    # ---- labelling jobs
    "labeling:job_list": (get(LEADS),),
    "labeling:job_new": (
        get(LEADS),
        get(LEADS, query={"set": "set_id"}),
        post(LEADS, JOB, query={"set": "set_id"}),
    ),
    "labeling:job_new_size": (post(NOBODY), post(LEADS, query={"set": "set_id"}, says=200)),
    "labeling:job_detail": (get(LEADS), get(LEADS, job_id="waiting_job"), get(LEADS, job_id="group_job")),
    "labeling:job_close": (post(LEADS),),
    "labeling:job_raters": (post(LEADS),),
    "labeling:job_start": (post(LEADS, job_id="waiting_job"),),
    "api_jobs": (get(LEADS), post(LEADS, {"name": "November", "set": "calibration", "raters": ["mara"]})),
    "api_job": (get(LEADS), get(LEADS, job_id="closed_job")),
    "api_job_close": (post(LEADS),),
    "api_job_raters": (post(LEADS, {"raters": []}),),
    "api_job_start": (post(LEADS, job_id="waiting_job"),),
    "api_job_next": (
        post(RATERS),
        post(NOBODY, job_id="foreign_job"),
        post(RATERS, job_id="closed_job"),  # nothing is left in it
        post(RATERS, job_id="waiting_job"),  # nor yet in this one
        post(OTHER, job_id="group_job"),
    ),
    # ---- imports
    "labeling:import_list": (get(LEADS),),
    "labeling:import_new": (get(LEADS), get(LEADS, query={"kind": "labels"}), post(LEADS, says=200)),
    "labeling:import_template": (get(LEADS), get(NOBODY, form="zip")),
    "labeling:import_detail": (get(LEADS), get(LEADS, import_id="checked_import")),
    "labeling:import_columns": (post(LEADS, {"column-0": "id", "column-1": "customer"}),),
    "labeling:import_change": (post(LEADS, import_id="checked_import"),),
    "labeling:import_start": (post(LEADS, import_id="checked_import"),),
    "labeling:import_cancel": (post(LEADS, import_id="import_at_work"),),
    "labeling:import_discard": (post(LEADS),),
    "labeling:import_undo": (post(LEADS, import_id="finished_import"),),
    "labeling:import_problems": (get(LEADS, import_id="checked_import"),),
    # ---- adjudication
    "labeling:adjudication_queue": (get(LEADS),),
    "labeling:adjudicate": (get(LEADS), post(LEADS, DECISION | {"value": "true"})),
    "labeling:adjudicate_named": (post(LEADS, says=200),),
    "labeling:adjudicate_withdraw": (post(NOBODY), post(LEADS, {"seen": "decision"})),
    "labeling:adjudicate_likely": (get(LEADS),),
    "api_adjudication_queue": (get(LEADS),),
    "api_adjudicate": (
        get(LEADS),
        Case(LEADS, "PUT", DECISION),
        Case(LEADS, "DELETE", query={"seen": "decision"}),
    ),
    "api_dawid_skene": (get(LEADS),),
    # ---- rubric
    "labeling:rubric_list": LOOK,
    "labeling:rubric_new": (get(LEADS), post(LEADS, {"name": "Later", "criteria": "stated_wrong_fact"})),
    "labeling:rubric_detail": LOOK,
    "labeling:rubric_defaults": (get(LEADS), post(LEADS, {"criteria": "stated_wrong_fact"})),
    "labeling:rubric_rename": (post(LEADS, {"name": "Renamed", "seen": "Test rubric"}),),
    "labeling:rubric_dimension_add": (post(LEADS, {"name": "Tone"}),),
    "labeling:rubric_dimension_rename": (post(LEADS, {"name": "Tone", "seen": "Compliance"}),),
    **{
        f"labeling:rubric_dimension_{act}": (post(LEADS, {"seen": "dimension_id"}),) for act in ("up", "down")
    },
    "labeling:rubric_dimension_remove": (
        post(LEADS, dimension_id="empty_dimension"),
        post(LEADS, says=200),  # it has criteria
    ),
    "labeling:criterion_new": (get(LEADS), post(LEADS, CRITERION)),
    "labeling:criterion_edit": (get(LEADS), post(LEADS, CRITERION, says=200)),  # whose base is missing
    "labeling:criterion_key": (post(LEADS, {"question": "Is it so?"}, says=200),),
    "alignment:criterion_draft": (post(LEADS, {"act": "show"}, says=200),),
    "api_rubrics": (get(AUTHORS), post(LEADS, {"name": "Later", "dimensions": [], "criteria": []}, says=201)),
    "api_rubric": (get(AUTHORS), post(LEADS, CRITERION | {"passes_when": True}, says=201)),
    "api_criterion_change": (post(LEADS, {"base": 1, "reason": "Asked for", "critical": True}),),
    # ---- texts for raters, notes, rules
    "labeling:guideline_list": LOOK,
    "labeling:guideline_preview": (post(AUTHORS, {"text": "*So*"}, says=200),),
    "labeling:guideline_detail": LOOK,
    "labeling:guideline_edit": (get(AUTHORS), post(AUTHORS, GUIDELINE)),
    "labeling:read_guideline": (get(RATERS),),
    "labeling:criterion_text": LOOK,
    "labeling:criterion_text_edit": (get(AUTHORS), post(AUTHORS, TEXT)),
    "labeling:guideline_undo": (post(AUTHORS),),
    "labeling:guideline_decide": (post(LEADS, {"meaning": "wording"}),),
    "labeling:criterion_text_undo": (post(AUTHORS),),
    "labeling:criterion_text_decide": (post(LEADS, {"meaning": "wording"}),),
    "labeling:criterion_evidence": (post(AUTHORS, {"needed": "1"}),),
    "labeling:criterion_text_preview": (post(AUTHORS, TEXT, says=200),),
    "labeling:note_list": LOOK,
    "labeling:note_detail": NOTED,
    "labeling:note_settle": SETTLE,
    "labeling:workspace": (get(LEADS), post(LEADS, {"comment_required": "on"})),
    "labeling:workspace_chats": (get(LEADS), post(LEADS, {"redact": ["email"], "regions": "GB"})),
    "labeling:workspace_chats_try": (post(LEADS, {"chat": "Customer: Hi"}, says=200),),
    "labeling:workspace_log": (get(LEADS),),
    "labeling:workspace_log_file": (get(LEADS),),
    # ---- people
    "labeling:people": (get(LEADS), post(LEADS, {"role": "rater"}, says=200)),
    "labeling:person_new": (get(LEADS), post(LEADS, {"username": "zoe", "roles": "rater"}, says=200)),
    "labeling:person": (get(LEADS), post(LEADS, {"name": "Zoe", "roles": "rater"})),
    "labeling:person_password": (post(LEADS, says=200),),
    "labeling:person_deactivate": (get(LEADS), post(LEADS)),
    "labeling:person_activate": (post(LEADS),),
    "labeling:group_new": (get(LEADS), post(LEADS, {"name": "Night shift"})),
    "labeling:group_delete": (post(LEADS),),
    "labeling:invite_renew": (post(LEADS, says=200),),
    "labeling:invite_revoke": (post(LEADS),),
    "api_assignment_guideline": (get(RATER), get(OTHER, assignment_id="foreign_assignment")),
    "api_assignment_notes": (post(RATER, NOTE), post(OTHER, NOTE, assignment_id="foreign_assignment")),
    "api_rubric_guidelines": (get(AUTHORS), post(AUTHORS, GUIDELINE)),
    "api_criterion_versions": (get(AUTHORS), post(AUTHORS, TEXT)),
    "api_rubric_guideline_undo": (post(AUTHORS, says=409),),
    "api_rubric_guideline_decide": (post(LEADS, {"meaning": "wording"}, says=409),),
    "api_criterion_version_undo": (post(AUTHORS, says=409),),
    "api_criterion_version_decide": (post(LEADS, {"meaning": "wording"}, says=409),),
    "api_workspace": (get(LEADS), Case(LEADS, "PATCH", {"comment_required": True})),
    "api_workspace_log": (get(LEADS),),
    "api_incoming": (get(LEADS), Case(LEADS, "PATCH", {"redact": ["email"]})),
    "api_chats": (post(LEADS, {"chats": []}),),
    "api_notes": LOOK,
    "api_note_settle": SETTLE,
    # ---- chat sets
    "labeling:set_list": LOOK,
    "labeling:set_detail": LOOK,
    "labeling:set_chat": (get(AUTHORS), get(LEADS, chat_id="holdout_chat")),
    "labeling:set_kind": (get(LEADS), post(LEADS, {"kind": "curated"})),
    "api_sets": (
        get(LEADS),
        post(LEADS, {"set": "calibration", "chats": ["CANARY-train"]}, says=200),
    ),
    "api_set": (get(LEADS), Case(LEADS, "PATCH", {"kind": "curated"})),
    "api_labels": (get(LEADS),),
    "api_export": (get(LEADS),),
    # ---- tokens
    "labeling:token_list": (get(SIGNED_IN), post(SIGNED_IN, {"name": "mine", "expires": 7}, says=200)),
    "labeling:token_revoke": (post(LEADS), post(OTHER, token_id="foreign_token")),  # everybody their own
    # ---- judge
    "alignment:criterion_list": LOOK,
    "alignment:criterion_detail": LOOK,
    "alignment:criterion_assign": (post(AUTHORS, {"owner": "otto"}),),
    "alignment:prompt_version": (get(AUTHORS), get(AUTHORS, query={"against": 1}, number="newest_prompt")),
    "alignment:prompt_restore": (
        post(AUTHORS, {"reason": "The newer one was worse."}, number="older_prompt"),
        post(AUTHORS, {"reason": "No need."}, number="newest_prompt", says=200),
    ),
    "api_criteria": LOOK,
    "api_criterion": LOOK,
    "api_prompts": (
        get(AUTHORS),
        post(AUTHORS, {"text": "# Objective\nSo?", "reason": "Clearer.", "base": 3}),
    ),
    "api_prompt": (get(AUTHORS), get(AUTHORS, query={"against": 1}, number="newest_prompt")),
    "api_prompt_restore": (
        post(AUTHORS, {"reason": "The newer one was worse."}, number="older_prompt", says=201),
        post(AUTHORS, {"reason": "No need."}, number="newest_prompt", says=409),
    ),
    # ---- prompt editor
    "alignment:prompt_edit": (get(AUTHORS), post(AUTHORS, {"reason": "Clearer.", "revision": 0})),
    "alignment:prompt_start": (post(AUTHORS),),
    "alignment:prompt_discard": (post(AUTHORS),),
    "alignment:prompt_findings": LOOK,
    "alignment:prompt_markdown": (post(AUTHORS, {"text": "*So*"}, says=200),),
    "alignment:prompt_changes": (post(AUTHORS, {"text": "*So*"}, says=200),),
    "alignment:prompt_since": LOOK,
    "alignment:prompt_examples": LOOK,
    "alignment:prompt_example": (
        get(NOBODY),  # dev
        get(NOBODY, chat_id="holdout_chat"),
        get(AUTHORS, chat_id="train_chat"),
        post(AUTHORS, chat_id="train_chat", says=200),
    ),
    "alignment:prompt_example_remove": (post(NOBODY, index=0),),  # no draft has any
    "alignment:prompt_example_edit": (get(NOBODY, index=0), post(NOBODY, index=0)),
    "api_prompt_draft": (
        get(NOBODY),  # nobody has one yet
        Case(AUTHORS, "PUT", {"base": 1, "revision": 0, "text": "# Objective\nSo?"}),
        Case(AUTHORS, "DELETE"),
    ),
    "api_prompt_lint": (post(AUTHORS, {"text": "# Objective\nSo?"}),),
    # ---- runs
    "alignment:redesign_propose": (post(AUTHORS, {"note": "It asks two things."}),),
    "alignment:redesign_refuse": (post(LEADS, {"reason": "It asks one."}),),
    "alignment:redesign": (
        get(LEADS),
        get(LEADS, query={"kind": "split"}),
        post(LEADS, {"step": "confirm", "reason": "Unused"}, query={"kind": "retire"}),
    ),
    "api_criterion_redesign": (post(LEADS, {"kind": "retire", "reason": "Unused"}),),
    "api_criterion_lineage": LOOK,
    "evaluation:profile_list": LOOK,
    "evaluation:profile_new": (get(LEADS), post(LEADS, PROFILE)),
    "evaluation:profile_detail": LOOK,
    "evaluation:profile_edit": (get(LEADS), post(LEADS, PROFILE)),
    "evaluation:profile_act": (post(LEADS, act="duplicate"),),
    "evaluation:profile_endpoint": (post(LEADS),),
    "evaluation:endpoint_list": (get(LEADS),),
    "evaluation:endpoint_new": (
        get(LEADS),
        post(LEADS, {"name": "New", "address": "https://new.test/v1", "api_key": "k"}),
    ),
    "evaluation:endpoint_detail": (get(LEADS),),
    "evaluation:endpoint_edit": (
        get(LEADS),
        post(LEADS, {"name": "Office", "address": "https://office.test/v1"}),
    ),
    "evaluation:endpoint_act": (
        post(LEADS, act="disable"),
        post(LEADS, act="enable"),
        post(LEADS, {"model": "m"}, act="offer"),
        post(LEADS, act="remove"),
    ),
    "evaluation:model_test": (post(LEADS, {"model": "m"}),),
    "evaluation:model_detail": LOOK,
    "evaluation:model_act": (post(LEADS, act="set"), post(LEADS, act="forget"), post(LEADS, act="cancel")),
    "evaluation:run_list": LOOK,
    "evaluation:run_new": (get(LEADS), post(LEADS, RUN)),
    "evaluation:run_estimate": (get(LEADS),),
    "evaluation:run_detail": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "evaluation:run_engine": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "evaluation:run_act": (post(LEADS, act="cancel", run_id="paused_run"),),
    "alignment:prompt_preview": (get(AUTHORS, query={"chat": "chat_id"}), get(AUTHORS)),
    "alignment:prompt_try": (get(AUTHORS), post(AUTHORS, TRY, says=200)),
    "alignment:prompt_try_estimate": (get(AUTHORS, query=TRY),),
    "alignment:prompt_try_progress": LOOK,
    "alignment:prompt_try_cancel": (post(AUTHORS, says=200),),
    "alignment:prompt_chats": (get(AUTHORS, query={"words": "chat"}),),
    "alignment:prompt_pin": (post(AUTHORS, {"chat": "1"}, says=200),),
    # `try_id` is what a fourth person tried: no other author's, but a lead's to see.
    "alignment:prompt_try_chat": (get(LEADS, run_id="try_id"), get(NOBODY)),
    "alignment:regression_list": LOOK,
    "alignment:regression_cell": (get(AUTHORS, cell="still_wrong"),),
    "alignment:regression_chat": (get(AUTHORS), get(LEADS, chat_id="holdout_chat")),
    "alignment:regression_topics": (get(AUTHORS, query={"criterion": "key"}),),
    "alignment:prompt_suggest": (get(AUTHORS), post(AUTHORS, says=200)),
    "alignment:suggestion_detail": LOOK,
    "alignment:suggestion_act": (
        post(AUTHORS, act="dismiss", says=200),
        post(AUTHORS, act="use"),
    ),
    "api_criterion_suggestions": (post(AUTHORS, says=409),),  # people and judge differ on no train chat
    "api_suggestion": LOOK,
    "api_suggestion_use": (post(AUTHORS),),
    "alignment:regression_new": (
        get(AUTHORS),
        get(AUTHORS, query={"kind": "judge"}),
        post(AUTHORS, TEST),
    ),
    "alignment:regression_estimate": (get(AUTHORS), get(AUTHORS, query=TEST)),
    "alignment:regression_detail": (get(AUTHORS), get(AUTHORS, test_id="running_test")),
    "alignment:regression_act": (post(AUTHORS, act="cancel", test_id="running_test"),),
    "alignment:regression_ask": (post(AUTHORS, {"note": "Please."}),),  # refused: test again
    "alignment:regression_answer": (post(LEADS, {"answer": "refused", "reason": "Not yet."}),),
    "alignment:regression_release": (
        post(LEADS, {"reason": "It is needed."}, says=200),
    ),  # refused: test again
    "alignment:policy_list": LOOK,
    "alignment:policy_edit": (get(LEADS), post(LEADS, says=200)),  # nothing filled in
    "api_regressions": (get(AUTHORS), post(AUTHORS, API_TEST)),
    "api_regression_estimate": (post(AUTHORS, API_TEST),),
    "api_regression": LOOK,
    "api_regression_pause": (post(AUTHORS, test_id="running_test"),),
    "api_regression_resume": (post(AUTHORS, test_id="running_test", says=409),),
    "api_regression_cancel": (post(AUTHORS, test_id="running_test"),),
    "api_regression_release": (post(LEADS, {"override": True, "reason": "So be it."}, says=409),),
    "api_policies": (get(AUTHORS), post(LEADS, {"parameters": LIMITS, "reason": "We know more."})),
    "api_runs": (get(AUTHORS), post(LEADS, {"set": "calibration", "engine": "direct"})),
    "api_run": (get(AUTHORS), get(LEADS, run_id="try_id")),
    "api_run_pause": (post(LEADS, says=409),),  # it is done
    "api_run_resume": (post(LEADS, run_id="paused_run", says=409),),  # it began at another endpoint
    "api_run_cancel": (post(LEADS, run_id="paused_run"),),
    "api_prompt_preview": (post(AUTHORS, {"chat": "chat-2"}, says=200),),
    "api_prompt_tries": (
        post(AUTHORS, {"what": "chat", "chat": "chat-2"}, says=202),
        post(AUTHORS, {"what": "chat", "chat": "chat-4"}, says=400),  # the holdout
    ),
    "api_prompt_try": (get(LEADS, run_id="try_id"), get(NOBODY)),
    # ---- quality of labels
    "quality:list": (get(LEADS),),
    "quality:overview": (get(LEADS),),
    "quality:pairs": (get(LEADS),),
    "quality:team": (get(LEADS),),
    "quality:raters_csv": (get(LEADS),),
    "quality:criterion": (get(LEADS),),
    "quality:set_overview": (get(LEADS),),
    "quality:set_pairs": (get(LEADS),),
    "quality:set_team": (get(LEADS),),
    "quality:set_raters_csv": (get(LEADS),),
    "quality:set_criterion": (get(LEADS),),
    "api_job_quality": (get(LEADS),),
    "api_set_quality": (get(LEADS),),
}


def route_names() -> dict[str, set[str]]:
    """Every route of the URLconf by its full name, with the names of its arguments.

    A route without a name is listed by its pattern: it has to get one.
    """
    return dict(_walk(get_resolver().url_patterns, prefix="", names=frozenset(), path=""))


def _walk(
    patterns: Iterable[URLPattern | URLResolver], *, prefix: str, names: frozenset[str], path: str
) -> Iterator[tuple[str, set[str]]]:
    for entry in patterns:
        own = names | set(entry.pattern.regex.groupindex)
        where = path + str(entry.pattern)
        if isinstance(entry, URLResolver):
            space = f"{prefix}{entry.namespace}:" if entry.namespace else prefix
            yield from _walk(entry.url_patterns, prefix=space, names=own, path=where)
        else:
            yield (f"{prefix}{entry.name}" if entry.name else f"unnamed /{where}"), set(own)


def own_routes() -> dict[str, set[str]]:
    """The routes that need a row: all but Django's admin."""
    return {name: args for name, args in route_names().items() if not is_admin(name)}


def is_admin(name: str) -> bool:
    """Whether the route is of Django's admin, its catch-all included."""
    return name.startswith((ADMIN, "unnamed /admin/"))


def url_of(name: str, values: Mapping[str, Any], args: Mapping[str, Any] | None = None) -> str:
    """The address of a route with the world's `values` for its arguments, or with those that `args` name."""
    wanted = own_routes()[name]
    given = in_world(args or {}, values)
    found = {arg: given.get(arg, values.get(arg)) for arg in wanted if arg in given or arg in values}
    try:
        return reverse(name, kwargs=found)
    except NoReverseMatch as error:
        missing = ", ".join(sorted(wanted - found.keys()))
        raise AssertionError(
            f"the route {name} needs a value for {missing}: add it to `args` in tests/world.py"
        ) from error


def in_world(given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The names in a row, and in its lists, replaced by the world's values."""

    def known(value: Any) -> Any:
        if isinstance(value, list):
            return [known(one) for one in value]
        return values.get(value, value) if isinstance(value, str) else value

    return {name: known(value) for name, value in given.items()}


def address(name: str, case: Case, values: Mapping[str, Any]) -> str:
    """The address of a row with its query."""
    query = urlencode(in_world(case.query, values))
    return url_of(name, values, case.args) + (f"?{query}" if query else "")


def send(client: Client, method: str, url: str, body: Mapping[str, Any], **more: Any) -> Any:
    """One call: pages are sent forms, the API is sent JSON."""
    if url.startswith("/api/"):
        return client.generic(method, url, json.dumps(body), content_type="application/json", **more)
    form = urlencode(body, doseq=True)
    return client.generic(method, url, form, content_type="application/x-www-form-urlencoded", **more)


def read_whole(answer: Any) -> Any:
    """Read a download to its end, which closes its file."""
    if answer.streaming:
        b"".join(answer)
    return answer
