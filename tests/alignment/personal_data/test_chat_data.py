"""One chat: the export has all its texts, and after its deletion none is left in the database or in files."""

import json
from copy import deepcopy
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from alignment.certificates.queries.certificates import certificate_verified
from alignment.models.certificates import Certificate
from alignment.models.issues import Issue, IssueNaming
from alignment.models.misalignments import Misalignment, TriageChange
from alignment.models.pins import PinnedChat
from alignment.models.reports import Report
from alignment.models.suggestions import Suggestion, SuggestionUse
from alignment.models.topic_prompt import TopicAnswer
from alignment.personal_data.queries.rows import chat_rows, personal_lines, same_text
from alignment.personal_data.services.chats import chat_erase
from alignment.retention.services import DELETED
from common.models import FormDraft
from common.problems import InputProblem
from evaluation.models.outbox import Delivery, OutboxEvent, WebhookEndpoint
from evaluation.models.prompts import FewShotExample, PromptDraft, PromptVersion
from evaluation.models.runs import Attempt, ModelCall, Passage, Run, TextBlock, Unit, UnitCall, Verdict
from evaluation.prompts.core.examples import example_block
from evaluation.prompts.queries.examples import example_as_sent
from labeling.chats.services.chats import chats_import
from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Consensus, Label
from labeling.models.people import AuditEvent, Workspace
from labeling.models.sampling import SampledChat, SampleDraw
from labeling.people.services.audit import audit
from tests.factories.articles import make_article
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
from tests.world import World, make_world

pytestmark = pytest.mark.django_db(transaction=True)
BLOCK = f"<<chat 0123>>\nm01 customer| {WORD}\n<<end chat 0123>>"
# What a word is written into where a column is JSON.
DOCUMENTS: dict[str, Any] = {
    "Chat.messages": [{"n": 1, "role": "user", "content": f"My name is {WORD}."}],
    "Chat.metadata": {"title": WORD},
    "Chat.redactions": [{"kind": "email", "count": 1, "hashes": [WORD]}],
    "Label.evidence": [{"n": 1, "start": 0, "end": 3, "quote": WORD}],
    "LabelRevision.evidence": [{"n": 1, "start": 0, "end": 3, "quote": WORD}],
    "TextBlock.text": BLOCK,
    "ModelCall.logprobs": [[WORD, 0.1]],
    "TriageChange.was": {"note": WORD},
    "TriageChange.now": {"note": WORD},
    "IssueWeek.terms": [WORD],
    "IssueNaming.request": {"messages": [WORD]},
    "Suggestion.request": {"messages": [WORD]},
    "FormDraft.values": {"reason": [WORD]},
    "ImportedRow.before": {"metadata": {"title": WORD}},
    "ImportedRow.after": {"metadata": {"title": WORD}},
    "DataImport.columns": [{"name": "text", "example": WORD}],
    "DataImport.problems": [{"number": 1, "field": "text", "message": WORD}],
    "AuditEvent.detail": {"reason": WORD},
}
# Columns that hold no text of a chat.
KEPT = {
    **dict.fromkeys(("Chat.external_id", "Chat.source"), "so that nobody takes the chat in again"),
    "Chat.content_hash": "recognizes the same chat; a hash",
    **dict.fromkeys(("Chat.experiment", "Chat.variant", "ExperimentMetric.variant"), "names of experiments"),
    **dict.fromkeys(("ChatSetMember.stratum", "SampledChat.stratum"), "topics"),
    **dict.fromkeys(("TopicAnswer.given", "TopicAnswer.answer"), "topics"),
    **dict.fromkeys(("Verdict.sided_with", "Verdict.first_brief", "Verdict.flags"), "words of our own"),
    **dict.fromkeys(("UnitCall.role", "RunChat.split", "TopicAnswer.fingerprint"), "words of our own"),
    **dict.fromkeys(
        ("ModelCall.key", "ModelCall.parts", "TextBlock.hash", "Suggestion.question", "IssueNaming.question"),
        "hashes",
    ),
    **dict.fromkeys(
        ("ModelCall.endpoint", "ModelCall.model", "ModelCall.role", "ModelCall.settings"), "of the request"
    ),
    **dict.fromkeys(("ModelCall.finish_reason", "Attempt.request_id"), "given by the endpoint"),
    **dict.fromkeys(("Suggestion.model", "IssueNaming.model", "IssueNaming.chats"), "of the request"),
    "Adjudication.by_name": "of the lead who decided",
    **dict.fromkeys(("Delivery.error", "Delivery.history"), "our words on the connection"),
    "OutboxEvent.payload": "ids and verdicts (test_retention.py proves it)",
    **dict.fromkeys(("PromptDraft.text", "Suggestion.base_text", "Suggestion.reason"), "an author's work"),
    "IssueWeek.centroid": "numbers",
    **dict.fromkeys(("Comment.subject", "InboxItem.subject", "FormDraft.key", "FormDraft.base"), "ids"),
    **dict.fromkeys(("ImportedRow.model", "DataImport.kind", "DataImport.sha256"), "of the import"),
    **dict.fromkeys(
        ("DataImport.file_name", "DataImport.source", "DataImport.mapping", "DataImport.options"), "a lead's"
    ),
    **dict.fromkeys(("DataImport.result", "DataImport.error"), "our words on the file"),
    **dict.fromkeys(("AuditEvent.address", "AuditEvent.token_name"), "of who acted"),
    **dict.fromkeys(("AuditEvent.verb", "AuditEvent.object_type", "AuditEvent.request_id"), "our words"),
}


@pytest.fixture(scope="module")
def planted_once(module_rows: Any) -> Any:
    return module_rows(planted_world)


@pytest.fixture
def world(planted_once: World, transactional_db: None) -> World:
    files_again()
    return deepcopy(planted_once)


def planted_world() -> World:
    """The chat has rows in every table that can hold its text, and the word in every such column."""
    world = make_world()
    chat = chat_of(world)
    complete(world, chat)
    rows = chat_rows(chat)
    missing = [name for name, query in rows.items() if not query.exists()]
    assert missing == [], "the test has no row of these"
    documents = DOCUMENTS | {
        "PromptDraft.examples": [{"chat": chat.external_id, "rationale": WORD}],
        "SuggestionUse.replaced": {"examples": [{"chat": chat.external_id, "rationale": WORD}]},
        "Suggestion.material": {"chats": [{"id": chat.pk, "people": WORD, "judge": WORD, "run": 1}]},
    }
    expired = Assignment.objects.filter(chat=chat, skip_reason="lease expired")
    skipped = rows["labeling.Assignment"].exclude(pk__in=list(expired.values_list("pk", flat=True)))
    plant({**rows, "labeling.Assignment": skipped}, kept=KEPT, documents=documents)
    chat.refresh_from_db()
    Chat.objects.bulk_update([chat], ["messages"])  # writes the words of the search, too
    filled_archive(by=world.users["lead"])
    prompt_with_example(chat)
    return world


def chat_of(world: World) -> Chat:
    return Chat.objects.get(pk=world.args["chat_id"])


def complete(world: World, chat: Chat) -> None:
    """Make a row in the tables where the world has none about this chat."""
    lead, now = world.users["lead"], timezone.now()
    unit = Unit.objects.filter(chat=chat).earliest("pk")
    call = UnitCall.objects.filter(unit__chat=chat).earliest("pk").call
    TextBlock.objects.create(hash="b" * 64, text=BLOCK)
    ModelCall.objects.filter(pk=call.pk).update(parts=[["user", ["b" * 64]]])
    Attempt.objects.create(call=call, run=unit.run, unit=unit, number=1, sent_at=now, outcome="answered")
    version, criterion = make_article("refunds", "14 days.", title="Refunds"), world.desk.criteria[0]
    Passage.objects.create(
        unit=unit, criterion=criterion, article_version=version, rank=1, start=0, end=5, score=1.0
    )
    SampledChat.objects.create(draw=SampleDraw.objects.earliest("pk"), chat=chat, probability=0.5)
    PinnedChat.objects.create(author=lead, criterion=criterion, chat=chat)
    TopicAnswer.objects.create(chat=chat, call=call)
    prompt = PromptVersion.objects.filter(criterion=criterion).earliest("pk")
    FewShotExample.objects.create(
        prompt_version=prompt, position=1, chat=chat, first_turn=1, last_turn=1, value=True, rationale=WORD
    )
    PromptDraft.objects.create(
        criterion=criterion, author=lead, base=prompt, text="Be fair.", examples=[{"chat": chat.external_id}]
    )
    suggestion = Suggestion.objects.earliest("pk")
    Suggestion.objects.filter(pk=suggestion.pk).update(call=call)
    SuggestionUse.objects.create(
        suggestion=suggestion, by=lead, revision=1, replaced={"examples": [{"chat": chat.external_id}]}
    )
    TriageChange.objects.create(
        misalignment=Misalignment.objects.get(chat=chat), by=lead, at=now, was={}, now={}, number=9
    )
    issue = Issue.objects.get(chats__chat=chat)
    Issue.objects.filter(pk=issue.pk).update(name_by=Issue.NameBy.MODEL)
    IssueNaming.objects.create(issue=issue, by=lead, chats=[chat.pk], state="done", call=call)
    event = OutboxEvent.objects.create(kind="verdicts.stored", payload={"chat_id": chat.external_id})
    Delivery.objects.create(event=event, endpoint=WebhookEndpoint.objects.earliest("pk"), next_at=now)
    FormDraft.objects.create(
        user=lead, key=f"/adjudication/{chat.pk}/polite/#0", values={}, base="", revision=1, updated_at=now
    )
    stored_file(by=lead, of=chat)
    audit(actor=lead, verb="raters named", obj=chat, reason="")


def prompt_with_example(chat: Chat) -> None:
    """A prompt about another chat that showed this one as an example."""
    row = FewShotExample.objects.select_related("chat", "prompt_version__criterion").get(chat=chat)
    text = example_block(
        example_as_sent(row),
        key=row.prompt_version.criterion.key,
        fence_secret=bytes(Workspace.current().fence_secret),
    )
    assert WORD in text
    TextBlock.objects.create(hash="e" * 64, text=f"## Criterion\n{text}\n### Response\nAnswer.")


def exported(chat: Chat) -> str:
    return "\n".join(json.dumps(line) for line in personal_lines(chat_rows(chat), chat=chat.external_id))


def test_the_export_has_every_text(world: World) -> None:
    chat = chat_of(world)
    lines = [json.loads(line) for line in exported(chat).splitlines()]
    found = {
        f"{line['table'].split('.')[1]}.{name}"
        for line in lines[1:]
        for name, value in line["row"].items()
        if WORD in json.dumps(value)
    }
    texts = {
        f"{name.split('.')[1]}.{field.name}"
        for name, query in chat_rows(chat).items()
        for field in query.model._meta.concrete_fields
        if is_text(field)
    }
    assert texts - set(KEPT) - found == set()
    assert lines[0]["tables"]["labeling.Label"] == Label.objects.filter(chat=chat).count()


def test_no_text_is_left_in_any_table_or_file(world: World) -> None:
    chat = chat_of(world)
    before = places_with(WORD)
    assert {"labeling_chat", "labeling_chatwords", "evaluation_textblock", "common_formdraft"} <= before
    assert any(place.endswith(".zip") for place in before)
    assert any(place.endswith("upload") for place in before)
    assert connection.vendor != "sqlite" or database_files_with(WORD)
    chat_erase(chat=chat, by=world.users["lead"])
    assert places_with(WORD) == set()
    if connection.vendor == "sqlite":
        assert database_files_with(WORD) == []


def test_labels_verdicts_and_figures_stay(world: World) -> None:
    chat, lead = chat_of(world), world.users["lead"]

    def figures() -> list[Any]:
        labels = Label.objects.order_by("pk").values_list("chat", "criterion", "rater", "value", "state")
        verdicts = Verdict.objects.order_by("pk").values_list("chat", "criterion", "state", "value")
        consensus = Consensus.objects.order_by("pk").values_list("chat", "criterion", "state")
        return [list(labels), list(verdicts), list(consensus), list(Report.objects.values_list("pk", "body"))]

    before = figures()
    left = chat_erase(chat=chat, by=lead)
    assert figures() == before
    assert left.verdicts == Verdict.objects.filter(chat=chat).count() > 0


def test_a_certificate_that_pinned_the_chat_verifies_as_before(world: World) -> None:
    certificate = Certificate.objects.get(pk=world.args["certificate_id"])
    sent: Any = {"body": certificate.body, "signature": certificate.signature, "user": world.users["lead"]}
    before = certificate_verified(**sent)
    chat_erase(chat=chat_of(world), by=world.users["lead"])
    after = certificate_verified(**sent)
    assert (before.word, after.word, after.state) == ("genuine", "genuine", before.state)


def test_an_example_from_it_is_cut_out_of_prompts_about_other_chats(world: World) -> None:
    chat_erase(chat=chat_of(world), by=world.users["lead"])
    text = TextBlock.objects.get(pk="e" * 64).text
    assert text.startswith("## Criterion\n<<example ") and text.endswith("### Response\nAnswer.")
    assert DELETED in text


def test_customers_are_pseudonyms_that_still_group_their_chats(world: World) -> None:
    chat = chat_of(world)
    chat_erase(chat=chat, by=None)
    chat.refresh_from_db()
    assert chat.unit_id == chat.cluster != WORD
    assert chat.unit_id.startswith("deleted-")


def test_the_same_chat_is_not_taken_in_again(world: World, tmp_path: Any) -> None:
    chat = chat_of(world)
    line = {"id": chat.external_id, "messages": [{"role": "user", "content": f"Again {WORD}."}]}
    chat_erase(chat=chat, by=None)
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(line))
    with pytest.raises(InputProblem, match="already exists with other messages"):
        chats_import(path=path)
    assert places_with(WORD) == set()


def test_a_chat_that_a_run_judges_now_has_to_wait(world: World) -> None:
    chat = chat_of(world)
    unit = Unit.objects.filter(chat=chat).earliest("pk")
    Unit.objects.filter(pk=unit.pk).update(state=Unit.State.OPEN)
    Run.objects.filter(pk=unit.run_id).update(state=Run.State.RUNNING)
    with pytest.raises(InputProblem, match=f"Run {unit.run_id} is judging this chat"):
        chat_erase(chat=chat, by=None)
    assert WORD in json.dumps(Chat.objects.get(pk=chat.pk).messages)


def test_the_log_says_who_deleted_which_chat_and_nothing_of_its_text(world: World) -> None:
    chat, lead = chat_of(world), world.users["lead"]
    chat_erase(chat=chat, by=lead)
    event = AuditEvent.objects.get(verb="personal-data deleted")
    assert (event.actor, event.object_id, event.detail["chat"]) == (lead, chat.pk, chat.external_id)


def test_chats_with_the_same_messages_are_named(world: World) -> None:
    chat, other = chat_of(world), Chat.objects.exclude(pk=world.args["chat_id"]).earliest("pk")
    Chat.objects.filter(pk=other.pk).update(content_hash=chat.content_hash)
    assert list(same_text(chat)) == [other]
