"""What people have to answer for: one entry in the audit log, with who, what and from where.

Every verb that the product knows has a row here, or a test elsewhere that finds its one entry.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alignment.models.alerts import AlertMute
from alignment.models.regressions import RegressionTest
from alignment.models.requests import RedesignProposal
from alignment.regression.services.policies import policy_in_force
from evaluation.models.judges import JudgeProfile, JudgePrompt
from evaluation.models.outbox import WebhookEndpoint
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import CriterionVersion
from labeling.models.sampling import SamplePlan
from tests.cases import Case
from tests.factories.archives import stored_archive
from tests.factories.audit_verbs import product_verbs
from tests.factories.passkeys import passkey_of
from tests.routes import ROUTES, address, in_world, read_whole, send
from tests.world import World

pytestmark = pytest.mark.django_db

ADDRESS = "192.0.2.7"
PASSWORD = {"password": "correct horse battery"}


@dataclass(frozen=True)
class Action:
    """
    A call that a person makes, and the entries that it leaves.

    by : who makes it; an entry that names nobody is of the person who signs in.
    body : None for that of the call's row in `ROUTES`.
    before : changes the world and returns values for the arguments of the address.
    """

    method: str
    route: str
    verbs: tuple[str, ...]
    by: str
    body: dict[str, Any] | None
    before: Callable[[World, Client], dict[str, Any] | None] | None
    args: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.route, self.method, *map(str, self.args.values()), *self.verbs])


def call(
    method: str,
    route: str,
    *verbs: str,
    by: str = "lead",
    body: dict[str, Any] | None = None,
    before: Callable[[World, Client], dict[str, Any] | None] | None = None,
    **args: Any,
) -> Action:
    return Action(method, route, verbs, by, body, before, args)


# ---------- what has to be so before ----------


def deactivated(world: World, _: Client) -> None:
    User.objects.filter(pk=world.args["person_id"]).update(is_active=False)


def muted(world: World, _: Client) -> None:
    AlertMute.objects.create(criterion_id=world.args["criterion_id"], by=world.users["lead"])


def paused(world: World, client: Client) -> None:
    client.post(reverse("api_sample_plan_pause", args=[SamplePlan.objects.get().pk]))


def nothing_proposed(*_: Any) -> None:
    RedesignProposal.objects.all().delete()


def webhook_off(*_: Any) -> None:
    WebhookEndpoint.objects.update(active=False)


def another_profile(*_: Any) -> dict[str, Any]:
    return {"profile_id": JudgeProfile.objects.filter(is_default=False).earliest("pk").pk}


def connected(world: World, _: Client) -> None:
    SocialAccount.objects.create(user=world.users["lead"], provider="sso", uid="7")


def with_archive(world: World, client: Client) -> dict[str, Any]:
    """One with its file, which a rollback does not bring back."""
    return {"archive_id": stored_archive(by=world.users["lead"])}


def with_app(world: World, client: Client) -> None:
    TOTP.activate(world.users["lead"], "JBSWY3DPEHPK3PXP")
    client.post("/accounts/again/", PASSWORD)


def with_passkey(world: World, client: Client) -> dict[str, Any]:
    passkey_of(world.users["lead"])
    client.post("/accounts/again/", PASSWORD)
    return {"pk": Authenticator.objects.get().pk}


def decided(result: str) -> Callable[[World, Client], dict[str, Any]]:
    """Return what makes a finished test of a newer prompt against today's champion."""

    def make(world: World, _: Client) -> dict[str, Any]:
        criterion, run = world.args["criterion_id"], Run.objects.get(pk=world.args["run_id"])
        champion = PromptVersion.objects.get(criterion=criterion, number=1)
        JudgePrompt.objects.create(
            judge=run.judge,
            criterion_id=criterion,
            criterion_version=CriterionVersion.objects.filter(criterion=criterion).latest("number"),
            prompt_version=champion,
            group=0,
        )
        test = RegressionTest.objects.create(
            chat_set=world.desk.chat_set,
            split="dev",
            policy=policy_in_force(),
            candidate=PromptVersion.objects.create(
                criterion_id=criterion, number=9, text="# Objective\nIs it polite so?", content_hash="p9"
            ),
            baseline_run=run,
            candidate_run=run,
            state="done",
            result=result,
            body={"gate": result, "reasons": [], "more_labels": None, "criteria": [], "pooled": None},
            finished_at=timezone.now(),
        )
        return {"test_id": test.pk}

    return make


# ---------- the calls ----------

SIGNED_IN_ANEW = ("account created", "invitation accepted", "sign-in succeeded")
OVERRIDE: dict[str, Any] = {"reason": "The law says so.", "override": True}
ACTIONS: tuple[Action, ...] = (
    # labels and verdicts that are shown, uses of the holdout
    call("POST", "api_reveal", "verdicts revealed", by="rater", assignment_id="submitted_assignment"),
    call("POST", "labeling:adjudicate_named", "raters named"),
    call("POST", "alignment:regression_new", "holdout opened"),
    call("POST", "api_regressions", "holdout opened"),
    # the gate and champions
    *(
        call("POST", route, "champion changed", verb, body=body, before=decided(result))
        for route in ("alignment:regression_release", "api_regression_release")
        for verb, result, body in (("release made", "pass", {}), ("gate overridden", "fail", OVERRIDE))
    ),
    call("POST", "alignment:regression_ask", "release asked", by="author", before=decided("pass")),
    call("POST", "alignment:regression_answer", "release refused"),
    call("POST", "api_policies", "policy revised"),
    call("POST", "alignment:certificate_revoke", "certificate revoked"),
    call("POST", "api_certificate_revoke", "certificate revoked"),
    call("POST", "evaluation:profile_new", "profile created"),
    call("POST", "evaluation:profile_edit", "profile changed"),
    call("POST", "evaluation:profile_act", "profile created", act="duplicate"),
    call(
        "POST",
        "evaluation:profile_act",
        "profile made default",
        body={},
        before=another_profile,
        act="default",
    ),
    call("POST", "evaluation:profile_act", "profile deleted", body={}, before=another_profile, act="delete"),
    # exports
    call("GET", "labeling:workspace_log_file", "log exported"),
    call("GET", "alignment:export_file", "set exported"),
    call("GET", "api_export", "set exported"),
    call("GET", "api_run_verdicts", "verdicts exported"),
    call("GET", "api_run_session_scores_csv", "scores exported"),
    call("GET", "quality:raters_csv", "raters exported"),
    call("GET", "quality:set_raters_csv", "raters exported"),
    call("GET", "alignment:report_table", "report exported"),
    call("GET", "alignment:report_table_run", "report exported"),
    call("GET", "alignment:report_table_set", "report exported"),
    call("GET", "api_stored_report_csv", "report exported"),
    call("GET", "api_set_league_csv", "comparison exported"),
    call("GET", "monitoring:rates_csv", "rates exported"),
    call("GET", "monitoring:criterion_csv", "rates exported"),
    call("GET", "issues:csv", "issues exported"),
    call("GET", "api_experiment_export", "metrics exported"),
    call("POST", "alignment:archive_make", "archive requested"),
    call("GET", "alignment:archive_file", "archive downloaded", before=with_archive),
    call("POST", "alignment:archive_delete", "archive deleted"),
    call("POST", "alignment:chat_personal_data_file", "personal-data exported"),
    call("POST", "alignment:person_personal_data_file", "personal-data exported"),
    call("GET", "api_chat_personal_data", "personal-data exported"),
    call("GET", "api_person_personal_data", "personal-data exported"),
    call("DELETE", "api_chat_personal_data", "personal-data deleted"),
    # accounts, tokens, sessions
    call("POST", "labeling:people", "invitation created"),
    call("POST", "labeling:invite_renew", "invitation renewed"),
    call("POST", "labeling:invite_revoke", "invitation revoked"),
    call("POST", "labeling:join", *SIGNED_IN_ANEW, by="anonymous"),
    call("POST", "labeling:person_new", "account created"),
    call("POST", "labeling:person", "account changed", "roles changed"),
    call("POST", "labeling:person_password", "reset-link created"),
    call("POST", "labeling:person_deactivate", "account deactivated"),
    call("POST", "labeling:person_activate", "account activated", before=deactivated),
    call("POST", "labeling:person_sessions_end", "sessions revoked"),
    call("POST", "account_sessions_end", "sessions revoked"),
    call("POST", "labeling:group_new", "group created"),
    call("POST", "labeling:group_delete", "group deleted"),
    call("POST", "account_change_password", "password changed", "token revoked"),
    call(
        "POST",
        "labeling:token_list",
        "token created",
        body={"name": "mine", "expires": 7, "scopes": ["see_judge"]},
    ),
    call("POST", "labeling:token_revoke", "token revoked"),
    call("POST", "account_logout", "sign-out done"),
    call("POST", "mfa_deactivate_totp", "second-factor removed", body={}, before=with_app),
    call("POST", "mfa_edit_webauthn", "second-factor renamed", body={"name": "Laptop"}, before=with_passkey),
    call("POST", "sign_on_disconnect", "sign-on disconnected", before=connected),
    # settings and connections
    call("POST", "labeling:workspace", "settings changed"),
    call("PATCH", "api_workspace", "settings changed"),
    call("POST", "labeling:workspace_chats", "settings changed"),
    call("PATCH", "api_incoming", "settings changed"),
    call("POST", "alignment:topic_prompt", "settings changed"),
    call("PATCH", "api_topic_prompt", "settings changed"),
    call("POST", "alerts:settings", "alert settings changed"),
    call("POST", "experiments:settings", "experiment changed"),
    call("PATCH", "api_experiment", "experiment changed"),
    call("POST", "evaluation:endpoint_new", "endpoint connected"),
    call("POST", "evaluation:endpoint_edit", "endpoint changed"),
    *(
        call("POST", "evaluation:endpoint_act", f"endpoint {done}", act=act)
        for act, done in (("disable", "disabled"), ("enable", "enabled"), ("remove", "removed"))
    ),
    call("POST", "evaluation:webhook_new", "webhook added"),
    call("POST", "api_webhooks", "webhook added"),
    call("POST", "evaluation:webhook_edit", "webhook changed"),
    call("POST", "evaluation:webhook_act", "secret renewed", act="secret"),
    call("POST", "api_webhook_secret", "secret renewed"),
    call("POST", "evaluation:webhook_act", "webhook disabled", act="off"),
    call("PATCH", "api_webhook", "webhook disabled"),
    call("POST", "evaluation:webhook_act", "webhook enabled", before=webhook_off, act="on"),
    call("POST", "evaluation:webhook_act", "webhook removed", before=webhook_off, act="remove"),
    call("POST", "evaluation:webhook_act", "event replayed", act="again"),
    call("POST", "api_webhook_replay", "event replayed"),
    call("POST", "evaluation:webhook_act", "events replayed", act="replay"),
    # sample plans, alerts, issues
    call("POST", "evaluation:sample_plan_new", "plan created"),
    call("POST", "api_sample_plans", "plan created"),
    call("POST", "evaluation:sample_plan_edit", "plan changed"),
    call("PATCH", "api_sample_plan", "plan changed"),
    call("POST", "evaluation:sample_plan_act", "plan paused", act="pause"),
    call("POST", "api_sample_plan_pause", "plan paused"),
    call("POST", "api_sample_plan_resume", "plan resumed", before=paused),
    call("POST", "evaluation:sample_plan_act", "night sampled", act="sample"),
    call("POST", "alerts:act", "alert acknowledged", act="acknowledge"),
    call("POST", "api_alert_acknowledge", "alert acknowledged"),
    call("POST", "alerts:act", "alert snoozed", act="snooze"),
    call("POST", "api_alert_snooze", "alert snoozed"),
    call("POST", "alerts:act", "alerts muted", act="mute"),
    call("POST", "api_alert_mute", "alerts muted"),
    call("POST", "alerts:criterion_act", "alerts unmuted", before=muted, act="unmute"),
    call("POST", "api_alert_unmute", "alerts unmuted", before=muted),
    call("POST", "alerts:act", "alert accepted as baseline", act="accept"),
    call("POST", "api_alert_accept", "alert accepted as baseline"),
    call("POST", "issues:find", "issues clustered"),
    call("POST", "issues:change", "issue changed", by="author"),
    call("PATCH", "api_issue", "issue changed", by="author"),
    call("POST", "issues:send", "issue reported", act="webhook"),
    # labels, jobs, chats
    call("POST", "labeling:job_new", "job opened"),
    call("POST", "api_jobs", "job opened"),
    call("POST", "labeling:job_close", "job closed"),
    call("POST", "api_job_close", "job closed"),
    call("POST", "labeling:job_start", "job started"),
    call("POST", "api_job_start", "job started"),
    call("POST", "labeling:adjudicate", "label adjudicated"),
    call("PUT", "api_adjudicate", "label adjudicated"),
    call("POST", "labeling:adjudicate_withdraw", "adjudication withdrawn"),
    call("DELETE", "api_adjudicate", "adjudication withdrawn"),
    call("POST", "labeling:note_settle", "note settled"),
    call("POST", "api_note_settle", "note settled"),
    call("POST", "labeling:import_undo", "import undone"),
    call("POST", "api_sets", "chats added"),
    call("POST", "api_misalignments_to_set", "chats added"),
    # texts
    call("POST", "labeling:rubric_new", "champion changed", "rubric created"),
    call("POST", "api_rubrics", "rubric created"),
    call("POST", "labeling:rubric_defaults", "champion changed", "rubric extended"),
    call("POST", "labeling:rubric_rename", "rubric renamed"),
    call("POST", "labeling:rubric_dimension_add", "dimension added"),
    call("POST", "labeling:rubric_dimension_rename", "dimension renamed"),
    call("POST", "labeling:rubric_dimension_remove", "dimension removed", dimension_id="empty_dimension"),
    call("POST", "labeling:criterion_new", "champion changed", "criterion created"),
    call("POST", "api_rubric", "champion changed", "criterion created"),
    call("POST", "api_criterion_change", "criterion changed"),
    call("POST", "labeling:criterion_evidence", "criterion changed", by="author"),
    call("POST", "alignment:criterion_assign", "criterion assigned", by="author"),
    call("POST", "labeling:criterion_text_edit", "criterion written", by="author"),
    call("POST", "api_criterion_versions", "criterion written", by="author"),
    call("POST", "labeling:guideline_edit", "guideline written", by="author"),
    call("POST", "api_rubric_guidelines", "guideline written", by="author"),
    call("POST", "alignment:redesign_propose", "redesign proposed", by="author", before=nothing_proposed),
    call("POST", "alignment:redesign_refuse", "redesign refused"),
    call("POST", "alignment:redesign", "criterion retired"),
    call("POST", "api_criterion_redesign", "criterion retired"),
)
LOG = "labeling/transfer/test_import_log.py"
IMPORTS = f"{LOG}::test_every_import_stands_in_the_log_with_who_file_and_counts"
REDESIGN = "labeling/rubric/test_redesign.py"
MEANING = "labeling/rubric/test_text_meaning.py"
AGENT = "alignment/agents/test_agent_draft_test.py::test_a_draft_becomes_a_version_that_the_gate_decides_on"
NOTICES = "labeling/people/test_account_mail.py::test_changes_of_factors_and_new_codes_are_told"
FACTORS = "labeling/people/test_second_factor.py"
SIGN_INS = "labeling/people/test_sign_in_log.py"
# Entries of commands and workers, and of what needs more than one call.
ELSEWHERE = {
    **{f"{what} imported": IMPORTS for what in ("chats", "labels", "adjudications", "rubric", "knowledge")},
    **dict.fromkeys(("draft proposed", "draft saved", "draft tested"), AGENT),
    "adjudication replaced": f"{LOG}::test_a_file_replaces_a_leads_decision_only_with_the_option",
    "label replaced": f"{LOG}::test_with_the_option_it_changes_and_the_log_keeps_both_answers",
    "verdicts imported": "evaluation/runs/test_import_verdicts.py::test_an_import_stands_in_the_log",
    "prompt imported": "evaluation/prompts/test_add_prompt.py::"
    "test_it_prints_the_new_versions_number_and_does_not_promote",
    "prompts imported": "evaluation/prompts/test_prompt_files.py::"
    "test_an_import_stands_in_the_log_and_a_dry_run_leaves_nothing",
    "archive exported": "alignment/archive/test_archive_page.py::"
    "test_an_empty_workspace_takes_it_in_and_a_full_one_refuses",
    "archive imported": "alignment/archive/test_archive.py::"
    "test_accounts_come_inactive_without_password_or_token_and_keep_their_roles",
    "certificate issued": "alignment/certificates/test_certificates.py::"
    "test_it_lasts_90_days_unless_said_otherwise",
    "chats drawn": "alignment/label_planning/test_label_samples.py::test_a_sample_is_in_the_audit_log",
    "raters added": "labeling/jobs/test_unreachable.py::"
    "test_the_api_adds_raters_once_and_refuses_a_closed_job_and_unknown_names",
    "kind changed": "labeling/sets/test_set_kinds.py::"
    "test_a_lead_changes_the_kind_on_the_sets_page_after_a_confirmation",
    "criterion merged": f"{REDESIGN}::test_a_merge_ends_all_and_takes_the_place_of_the_first",
    "criterion reactivated": f"{REDESIGN}::test_brought_back_it_is_asked_again_with_its_drafts",
    "criterion replaced": f"{REDESIGN}::test_a_replacement_may_ask_with_the_other_polarity",
    "criterion split": "alignment/prompts/redesign/test_redesign_pages.py::"
    "test_a_split_is_filled_in_looked_at_and_carried_out",
    "definition drafted": "alignment/rubric_drafts/test_definition_drafts.py::"
    "test_asked_followed_and_shown_beside_the_form_but_never_saved",
    "dimensions reordered": "labeling/rubric/test_rubric_editor.py::"
    "test_a_moved_dimension_is_a_new_judge_and_moved_back_the_earlier_one",
    "guideline undone": f"{MEANING}::test_the_undo_of_a_guideline_takes_its_criteria_back",
    "wording only confirmed": f"{MEANING}::"
    "test_what_an_author_calls_wording_is_a_new_question_until_a_lead_confirms_it",
    "wording only refused": f"{MEANING}::test_an_authors_guideline_waits_for_the_leads_word",
    "issue name asked": "alignment/issues/test_issue_names.py::test_only_one_name_is_asked_for_at_a_time",
    "topic prompt measured": "alignment/topic_prompt/test_topic_prompt.py::"
    "test_it_is_measured_against_given_topics_and_the_page_shows_confusions",
    "webhook stopped": "evaluation/webhooks/test_sending.py::"
    "test_a_dead_receiver_is_switched_off_and_the_leads_are_told",
    "demo step": "alignment/demo_workspace/test_create_demo.py::test_a_second_start_changes_nothing",
    "role changed": "labeling/people/test_role_log.py::"
    "test_changed_permissions_of_a_role_are_logged_and_a_role_is_never_deleted",
    "password removed": "labeling/people/test_role_log.py::test_a_password_that_is_removed_is_logged",
    "second-factor added": f"{FACTORS}::test_an_app_is_set_up_with_its_first_code_and_gives_recovery_codes",
    "second-factor recovered": f"{FACTORS}::test_a_recovery_code_signs_in_once_and_the_log_says_so",
    "second-factor renewed": NOTICES,
    "second-factor reset": f"{FACTORS}::test_a_lead_removes_it_and_the_log_says_so",
    "sign-in blocked": f"{SIGN_INS}::test_a_lock_out_has_one_entry_an_hour",
    "sign-in failed": f"{SIGN_INS}::test_a_wrong_password_and_a_wrong_code_say_which_account",
    "sign-on connected": "labeling/people/test_sign_on.py::"
    "test_a_stranger_of_the_provider_gets_an_account_without_a_role",
}


def case_of(action: Action) -> Case:
    """The row of the call; with a body of its own it needs none that its person may make."""
    if action.body is not None:
        return Case((action.by,), action.method, action.body, action.args)
    return next(
        case
        for case in ROUTES[action.route]
        if case.method == action.method and action.by in case.may and action.args.items() <= case.args.items()
    )


@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_one_entry_says_who_did_what_when_and_from_where(world: World, action: Action) -> None:
    client, case = Client(REMOTE_ADDR=ADDRESS), case_of(action)
    if action.by != "anonymous":
        client.force_login(world.users[action.by])
    values = {**world.args, **((action.before(world, client) if action.before else None) or {})}
    newest = AuditEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    url = address(action.route, replace(case, args={**case.args}), values)
    answer = read_whole(send(client, action.method, url, in_world(case.body, values)))
    events = list(AuditEvent.objects.filter(pk__gt=newest))
    assert sorted(event.verb for event in events) == sorted(action.verbs), answer.status_code
    whose = world.users.get(action.by) or User.objects.latest("pk")
    for event in events:
        assert (event.actor, event.address, event.token_name) == (whose, ADDRESS, "")
        assert event.request_id == answer.headers["X-Request-ID"]


# ---------- nothing is left out ----------


def test_every_verb_of_the_product_has_a_call_here_or_a_test_elsewhere() -> None:
    called = {verb for action in ACTIONS for verb in action.verbs}
    assert called | ELSEWHERE.keys() == product_verbs()
    assert called & ELSEWHERE.keys() == set()


@pytest.mark.parametrize(("verb", "test"), ELSEWHERE.items())
def test_the_test_elsewhere_looks_for_the_entry(verb: str, test: str) -> None:
    file, _, name = test.partition("::")
    text = (settings.BASE_DIR / "tests" / file).read_text("utf-8")
    (function,) = (node for node in ast.walk(ast.parse(text)) if getattr(node, "name", "") == name)
    source = ast.get_source_segment(text, function) or ""
    # NB: the one of imports goes through all kinds of files.
    written = f'"{verb}"' in source or ("imported" in source and f'"{verb.split()[0]}"' in source)
    assert written, f"{test} does not name {verb}"
