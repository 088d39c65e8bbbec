"""One rater: the export has their data, and after its deletion nothing names them; figures stay."""

import json
from copy import deepcopy
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import SESSION_KEY
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.utils import timezone

from alignment.certificates.queries.certificates import certificate_verified
from alignment.models.certificates import Certificate
from alignment.models.misalignments import Misalignment, TriageChange
from alignment.models.pins import PinnedChat
from alignment.models.reports import Report
from alignment.personal_data.queries.rows import Person, person_of, person_rows, personal_lines
from alignment.personal_data.services.people import ACTIVE, person_erase
from common.models import Comment, FormDraft, InboxChoice, InboxItem
from common.problems import InputProblem
from evaluation.models.outbox import OutboxEvent
from evaluation.models.prompts import PromptDraft, PromptVersion
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.people import AccountMail, ApiToken, AuditEvent, Invitation, Rater, Role, User
from labeling.people.services.audit import audit, through_agent
from tests.factories.planted_words import (
    WORD,
    database_files_with,
    files_again,
    filled_archive,
    is_text,
    places_with,
    plant,
    stored_file,
)
from tests.factories.rows import make_rater, make_user
from tests.world import World, make_world

pytestmark = pytest.mark.django_db(transaction=True)
MAIL = f"{WORD}@shop.example"
DOCUMENTS: dict[str, Any] = {
    "User.username": f"{WORD}_user",
    "User.email": MAIL,
    "Invitation.email": MAIL,
    "EmailAddress.email": MAIL,
    "Rater.name": f"{WORD} name",
    "FormDraft.values": {"reason": [WORD]},
    "TriageChange.was": {"note": WORD, "owner": f"{WORD}_user"},
    "TriageChange.now": {"note": WORD, "owner": ""},
    "PromptDraft.examples": [{"chat": "1", "rationale": WORD}],
    "AccountMail.to": MAIL,
    "AuditEvent.detail": {"user": f"{WORD}_user", "name": f"{WORD} {WORD}", "email": MAIL},
    "SocialAccount.extra_data": {"name": WORD},
}
# Columns without a text of a person; those that the export leaves out, it leaves out for everybody.
KEPT = {
    "User.password": "a hash, which is made unusable",
    **dict.fromkeys(("ApiToken.digest", "Invitation.digest", "ApiToken.scopes"), "of a token"),
    **dict.fromkeys(("Authenticator.data", "UserSession.data"), "keys, which are deleted"),
    **dict.fromkeys(("UserSession.session_key", "EmailConfirmation.key"), "keys, which are deleted"),
    "SocialAccount.provider": "the provider's name",
    **dict.fromkeys(("Comment.subject", "InboxItem.subject", "FormDraft.key", "FormDraft.base"), "ids"),
    **dict.fromkeys(("Label.evidence", "LabelRevision.evidence"), "words of the chat, not of the rater"),
    "Adjudication.reason": "why the ground truth is what it is: the workspace's record",
    **dict.fromkeys(("AuditEvent.verb", "AuditEvent.object_type", "AuditEvent.request_id"), "our words"),
    "LogEntry.object_id": "an id",
    "AccountMail.error": "our words on the mail server",
    "AuditEvent.token_name": "of who acted: the test below",
}


@pytest.fixture(scope="module")
def planted_once(module_rows: Any) -> Any:
    return module_rows(planted_world)


@pytest.fixture
def world(planted_once: World, transactional_db: None) -> World:
    files_again()
    return deepcopy(planted_once)


def planted_world() -> World:
    """`other` has rows in every table, and the word in every column that can name or quote a person."""
    world = make_world()
    user, lead = world.users["other"], world.users["lead"]
    complete(world, user)
    User.objects.filter(pk=user.pk).update(is_active=False)
    rows = person_rows(person_of(user=user))
    missing = [name for name, query in rows.items() if not query.exists()]
    assert missing == [], "the test has no row of these"
    plant(rows, kept=KEPT, documents=DOCUMENTS)
    copies_of_the_name(world)
    stored_file(by=lead, of=Label.objects.filter(rater=Rater.objects.get(user=user)).earliest("pk"))
    filled_archive(by=lead)
    return world


def complete(world: World, user: User) -> None:
    """Make a row in the tables where the account has none."""
    now, lead, criterion = timezone.now(), world.users["lead"], world.desk.criteria[0]
    chat, prompt = world.desk.chats[0], PromptVersion.objects.filter(criterion=criterion).earliest("pk")
    user.email = MAIL
    user.save(update_fields=["email"])
    AccountMail.objects.create(kind="notice", to=MAIL, created_at=now, next_at=now)
    session = SessionStore()
    session[SESSION_KEY], session["name"] = str(user.pk), WORD
    session.save()
    UserSession.objects.create(user=user, session_key=session.session_key, ip="192.0.2.7", user_agent="x")
    EmailAddress.objects.create(user=user, email="other@shop.example")
    Authenticator.objects.create(user=user, type="totp", data={"secret": WORD})
    SocialAccount.objects.create(user=user, provider="sso", uid="7", extra_data={})
    Invitation.objects.create(
        role=Role.RATER, digest="9" * 64, created_by=lead, expires_at=now, used_by=user, used_at=now
    )
    FormDraft.objects.create(user=user, key="/x/", values={}, base="", revision=1, updated_at=now)
    InboxItem.objects.create(user=user, kind="assigned", subject="note:1", by=lead, at=now)
    InboxChoice.objects.create(user=user)
    Comment.objects.create(subject="note:1", text="Hm.", by=user, at=now)
    PromptDraft.objects.create(criterion=criterion, author=user, base=prompt, text="Be fair.", examples=[])
    PinnedChat.objects.create(author=user, criterion=criterion, chat=chat)
    TriageChange.objects.create(
        misalignment=Misalignment.objects.earliest("pk"), by=user, at=now, was={}, now={}, number=8
    )
    Adjudication.objects.create(
        chat=chat,
        criterion=criterion,
        value=True,
        reason="Turn 2.",
        by_name="x",
        by=user,
        created_at=now,
        replaced_at=now,
    )
    kind = ContentType.objects.get_for_model(User)
    LogEntry.objects.create(user=user, content_type=kind, object_id="1", object_repr="x", action_flag=CHANGE)


def copies_of_the_name(world: World) -> None:
    """Where other rows hold the names as text."""
    user, lead = User.objects.get(pk=world.users["other"].pk), world.users["lead"]
    names = {"raters": [f"{WORD} name", "mara"], f"{WORD} name": 3}
    audit(actor=lead, verb="raters added", obj=world.desk.job, **names)
    report = Report.objects.order_by("pk").first()
    assert report is not None
    Report.objects.filter(pk=report.pk).update(
        against=f"rater:{WORD} name", body=report.body | {"against": f"rater:{WORD} name", "raters": names}
    )
    OutboxEvent.objects.create(kind="issue.reported", payload={"owner": user.username})
    Comment.objects.create(subject="note:1", text=f"@{user.username} look", by=lead, at=timezone.now())
    LogEntry.objects.create(
        user=lead,
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(user.pk),
        object_repr=user.username,
        action_flag=CHANGE,
    )


def other_of(world: World) -> Person:
    return person_of(user=User.objects.get(pk=world.users["other"].pk))


def test_the_export_has_what_identifies_and_what_was_written(world: World) -> None:
    rows = person_rows(other_of(world))
    lines = list(personal_lines(rows, person="other"))
    found = {
        f"{line['table'].split('.')[1]}.{name}"
        for line in lines[1:]
        for name, value in line["row"].items()
        if WORD in json.dumps(value)
    }
    texts = {
        f"{name.split('.')[1]}.{field.name}"
        for name, query in rows.items()
        for field in query.model._meta.concrete_fields
        if is_text(field)
    }
    assert texts - set(KEPT) - found == set()
    assert lines[0]["tables"]["labeling.Label"] == len(Label.objects.filter(rater__user=world.users["other"]))


def test_no_secret_leaves_with_the_export(world: World) -> None:
    text = json.dumps(list(personal_lines(person_rows(other_of(world)))))
    user = User.objects.get(pk=world.users["other"].pk)
    assert user.password not in text
    assert '"secret"' not in text and '"digest"' not in text and '"session_key"' not in text


def test_nothing_names_the_person_in_any_table_or_file(world: World) -> None:
    before = places_with(WORD)
    assert {"labeling_user", "labeling_rater", "labeling_auditevent", "alignment_report"} <= before
    assert any(place.endswith(".zip") for place in before)
    person_erase(person=other_of(world), by=world.users["lead"])
    assert places_with(WORD) == set()
    if connection.vendor == "sqlite":
        assert database_files_with(WORD) == []


def test_agreement_stays_as_it_was(world: World) -> None:
    def figures() -> list[Any]:
        labels = Label.objects.order_by("pk").values_list("chat", "criterion", "rater", "value", "state")
        consensus = Consensus.objects.order_by("pk").values_list("chat", "criterion", "state", "n_true")
        return [list(labels), list(consensus)]

    before = figures()
    done = person_erase(person=other_of(world), by=world.users["lead"])
    assert figures() == before
    assert (
        done.labels == Label.objects.filter(rater__user=world.users["other"], state="submitted").count() > 0
    )
    assert Rater.objects.get(user=world.users["other"]).name == done.pseudonym


def test_certificates_verify_as_before(world: World) -> None:
    certificate = Certificate.objects.get(pk=world.args["certificate_id"])
    sent: Any = {"body": certificate.body, "signature": certificate.signature, "user": world.users["lead"]}
    person_erase(person=other_of(world), by=world.users["lead"])
    assert certificate_verified(**sent).word == "genuine"


def test_reports_against_the_rater_name_the_pseudonym(world: World) -> None:
    done = person_erase(person=other_of(world), by=world.users["lead"])
    report = Report.objects.get(against=f"rater:{done.pseudonym}")
    assert report.body["raters"] == {"raters": [done.pseudonym, "mara"], done.pseudonym: 3}


def test_nobody_can_sign_in_to_what_is_left(world: World) -> None:
    person_erase(person=other_of(world), by=world.users["lead"])
    user = User.objects.get(pk=world.users["other"].pk)
    assert (user.username, user.email, user.is_active, user.has_usable_password()) == (
        f"deleted-{user.pk}",
        "",
        False,
        False,
    )
    assert not user.groups.exists()


def test_the_log_keeps_who_did_what_and_when(world: World) -> None:
    before = list(AuditEvent.objects.order_by("pk").values_list("pk", "at", "actor", "verb", "object_id"))
    person_erase(person=other_of(world), by=world.users["lead"])
    after = list(AuditEvent.objects.order_by("pk").values_list("pk", "at", "actor", "verb", "object_id"))
    assert after[: len(before)] == before
    assert AuditEvent.objects.filter(verb="personal-data deleted").count() == 1


def test_the_log_keeps_no_name_of_a_token_of_the_person(world: World) -> None:
    other, lead = world.users["other"], world.users["lead"]
    for user, name in ((other, f"laptop of {WORD}"), (lead, "nightly")):
        with through_agent(token=ApiToken(name=name), program="agent"):
            audit(actor=user, verb="note settled", obj=other)
    person_erase(person=other_of(world), by=lead)
    kept = AuditEvent.objects.filter(verb="note settled").order_by("pk")
    assert list(kept.values_list("token_name", flat=True)) == ["", "nightly"]


def test_the_log_cannot_be_changed_afterwards(world: World) -> None:
    person_erase(person=other_of(world), by=world.users["lead"])
    with pytest.raises(Exception, match="append-only"), connection.cursor() as cursor:
        cursor.execute("UPDATE labeling_auditevent SET verb = 'x'")


def test_an_active_account_is_not_deleted(world: World) -> None:
    with pytest.raises(InputProblem, match=ACTIVE):
        person_erase(person=person_of(user=world.users["rater"]), by=world.users["lead"])


def test_a_lead_cannot_delete_a_superuser(world: World) -> None:
    root = make_user("root")
    User.objects.filter(pk=root.pk).update(is_superuser=True, is_active=False)
    root.refresh_from_db()
    with pytest.raises(InputProblem, match="Only a superuser"):
        person_erase(person=person_of(user=root), by=world.users["lead"])


def test_a_rater_without_an_account_gets_a_pseudonym_too(world: World) -> None:
    rater = make_rater(f"{WORD} alone")
    person_erase(person=person_of(rater=rater), by=None)
    rater.refresh_from_db()
    assert rater.name == f"deleted-rater-{rater.pk}"
