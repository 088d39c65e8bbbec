"""What leads do that others have to answer for: one entry in the audit log, with who, what and from where."""

from typing import Any

import pytest
from django.test import Client

from labeling.models.people import AuditEvent
from tests.cases import Case
from tests.routes import ROUTES, address, in_world, read_whole, send
from tests.world import World

pytestmark = pytest.mark.django_db

# Route, and what else its case has to name -> the entry. Its case is one of those that leads may make.
ACTIONS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("labeling:workspace", "POST", {}, "settings changed"),
    ("labeling:workspace_chats", "POST", {}, "settings changed"),
    ("alerts:settings", "POST", {}, "alert settings changed"),
    ("evaluation:endpoint_new", "POST", {}, "endpoint connected"),
    ("evaluation:endpoint_edit", "POST", {}, "endpoint changed"),
    ("evaluation:endpoint_act", "POST", {"act": "disable"}, "endpoint disabled"),
    ("evaluation:webhook_new", "POST", {}, "webhook added"),
    ("evaluation:webhook_edit", "POST", {}, "webhook changed"),
    ("evaluation:webhook_act", "POST", {"act": "secret"}, "secret renewed"),
    ("evaluation:webhook_act", "POST", {"act": "off"}, "webhook disabled"),
    ("labeling:people", "POST", {}, "invitation created"),
    ("labeling:invite_renew", "POST", {}, "invitation renewed"),
    ("labeling:invite_revoke", "POST", {}, "invitation revoked"),
    ("labeling:person_new", "POST", {}, "account created"),
    ("labeling:person_password", "POST", {}, "reset-link created"),
    ("labeling:person_deactivate", "POST", {}, "account deactivated"),
    ("labeling:person_sessions_end", "POST", {}, "sessions revoked"),
    ("labeling:group_new", "POST", {}, "group created"),
    ("labeling:group_delete", "POST", {}, "group deleted"),
    ("account_change_password", "POST", {}, "password changed"),
    ("labeling:workspace_log_file", "GET", {}, "log exported"),
    ("alignment:export_file", "GET", {}, "set exported"),
    ("api_export", "GET", {}, "set exported"),
    ("api_run_session_scores_csv", "GET", {}, "scores exported"),
    ("quality:raters_csv", "GET", {}, "raters exported"),
    ("api_experiment_export", "GET", {}, "metrics exported"),
    ("alignment:archive_make", "POST", {}, "archive requested"),
    ("alignment:archive_file", "GET", {}, "archive downloaded"),
    ("alignment:archive_delete", "POST", {}, "archive deleted"),
    ("labeling:import_undo", "POST", {}, "import undone"),
)


def case_of(name: str, method: str, args: dict[str, Any]) -> Case:
    return next(
        case
        for case in ROUTES[name]
        if case.method == method and "lead" in case.may and args.items() <= case.args.items()
    )


@pytest.mark.parametrize(("name", "method", "args", "verb"), ACTIONS)
def test_one_entry_says_who_did_what_when_and_from_where(
    world: World, name: str, method: str, args: dict[str, Any], verb: str
) -> None:
    case, lead = case_of(name, method, args), Client(REMOTE_ADDR="192.0.2.7")
    lead.force_login(world.users["lead"])
    newest = AuditEvent.objects.order_by("-pk").first()
    answer = send(lead, method, address(name, case, world.args), in_world(case.body, world.args))
    read_whole(answer)
    # A new password and a deactivation end tokens, each with an entry of its own.
    new = AuditEvent.objects.filter(pk__gt=newest.pk if newest else 0).exclude(verb="token revoked")
    (event,) = new
    assert (event.verb, event.actor, event.address) == (verb, world.users["lead"], "192.0.2.7")
    assert event.request_id == answer.headers["X-Request-ID"]
