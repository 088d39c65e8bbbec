"""POST /api/chats/: many chats at once, sent again without harm, wrong ones named, originals redacted."""

import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from labeling.ingest.services import chats as service
from labeling.models.chats import Chat, ChatSetMember, Topic
from labeling.models.ingest import ChatSource, IngestRequest, IngestSettings
from labeling.models.people import Role, User
from labeling.people.services.tokens import token_create
from labeling.sampling.queries import day_frame, yesterday
from labeling.sampling.services import draw_night
from tests.factories.nights import make_plan
from tests.factories.rows import make_rubric, make_set, make_user
from tests.files import label, run, write_jsonl

pytestmark = pytest.mark.django_db
URL = "/api/chats/"
HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}


@pytest.fixture
def lead() -> User:
    return make_user("ines", Role.LEAD)


class Sender:
    """A system that sends chats with a token for nothing else."""

    def __init__(self, user: User) -> None:
        self.client = Client()
        self.token = token_create(user=user, name="bot", scopes=["send_chats"], days=None).secret

    def post(self, body: Any, *, packed: bool = False, key: str = "", encoding: str = "") -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Token {self.token}"}
        if key:
            headers["Idempotency-Key"] = key
        if packed or encoding:
            headers["Content-Encoding"] = encoding or "gzip"
        raw = gzip.compress(raw) if packed else raw
        return self.client.post(URL, raw, content_type="application/json", headers=headers)

    def send(self, *chats: Any, **more: Any) -> dict[str, Any]:
        answer = self.post({"chats": list(chats), **more})
        assert answer.status_code == 200, answer.content
        return dict(answer.json())


@pytest.fixture
def sender(lead: User) -> Sender:
    return Sender(lead)


def chat(key: str, *messages: Any, **fields: Any) -> dict[str, Any]:
    return {"id": key, "messages": list(messages) or [HI], **fields}


def counts(answer: dict[str, Any]) -> tuple[int, int, int, int]:
    return answer["created"], answer["updated"], answer["unchanged"], answer["refused"]


def test_chats_are_stored_once_and_with_their_experiment(sender: Sender) -> None:
    sent = [
        chat("c1", topic="returns", experiment="exp", variant="b", unit_id="u1", started_at="2026-11-01"),
        chat("c2", {**HI, "created_at": "2026-11-02T10:00:00Z"}),
    ]
    assert counts(sender.send(*sent, source="shop-bot")) == (2, 0, 0, 0)
    assert counts(sender.send(*sent, source="shop-bot")) == (0, 0, 2, 0)
    row = Chat.objects.get(external_id="c1")
    assert (row.source, row.unit_id, row.variant, row.topic.key) == ("shop-bot", "u1", "b", "returns")
    assert row.origin == Chat.Origin.API
    later = Chat.objects.get(external_id="c2")
    assert later.last_at is not None and later.last_at.isoformat() == "2026-11-02T10:00:00+00:00"
    source = ChatSource.objects.get()
    assert (source.received, source.created, source.unchanged) == (4, 2, 2)


def test_the_same_id_of_another_source_is_another_chat(sender: Sender) -> None:
    sender.send(chat("c1"), source="one")
    assert counts(sender.send(chat("c1", HELLO), source="two")) == (1, 0, 0, 0)
    assert Chat.objects.filter(external_id="c1").count() == 2


def test_a_chat_grows_until_a_set_takes_it(sender: Sender) -> None:
    sender.send(chat("c1"))
    assert counts(sender.send(chat("c1", HI, HELLO))) == (0, 1, 0, 0)
    assert counts(sender.send(chat("c1", HI))) == (0, 0, 1, 0)  # an earlier delivery that was overtaken
    row = Chat.objects.get()
    assert row.message_count == 2 and row.sampled_at is None
    assert "hello" in Chat.objects.with_words(["hello"]).get().messages[1]["content"].lower()
    make_set(make_rubric("polite"), row)
    row = Chat.objects.get()
    assert row.sampled_at is not None
    answer = sender.send(chat("c1", HI, HELLO, {"role": "user", "content": "Bye"}), chat("c2"))
    assert counts(answer) == (1, 0, 0, 1)
    assert answer["errors"] == [
        {
            "index": 0,
            "id": "c1",
            "code": "refused",
            "field": "messages",
            "message": "Chat c1 was sampled with 2 messages and cannot grow. "
            "Send later messages under another id.",
        }
    ]
    row.refresh_from_db()
    assert row.message_count == 2


@pytest.mark.parametrize("taken_by", ["sample", "label"])
def test_a_chat_that_a_sample_or_a_label_takes_cannot_grow(
    sender: Sender, lead: User, taken_by: str, tmp_path: Path
) -> None:
    sender.send(chat("c1"), chat("c2"))
    rubric = make_rubric("polite")
    if taken_by == "sample":
        Chat.objects.update(created_at=timezone.now() - timedelta(days=1))
        draw_night(plan=make_plan(rubric, by=lead, chats=1), day=yesterday(), spreads={}, seed=1)
    else:
        run("import_labels", write_jsonl(tmp_path / "labels.jsonl", label("c1")))
    taken = Chat.objects.exclude(sampled_at=None).get()
    answer = sender.send(chat("c1", HI, HELLO), chat("c2", HI, HELLO))
    assert counts(answer) == (0, 1, 0, 1)
    assert [one["id"] for one in answer["errors"]] == [taken.external_id]
    assert taken not in day_frame(timezone.localdate(taken.created_at))


def test_what_was_judged_keeps_its_variant(sender: Sender) -> None:
    sender.send(chat("c1", experiment="exp", variant="a"))
    assert counts(sender.send(chat("c1", experiment="exp", variant="b"))) == (0, 1, 0, 0)
    make_set(make_rubric("polite"), Chat.objects.get())
    assert counts(sender.send(chat("c1", experiment="exp", variant="a"))) == (0, 0, 1, 0)
    assert Chat.objects.get().variant == "b"


def test_a_wrong_chat_is_named_and_the_others_are_stored(sender: Sender) -> None:
    answer = sender.send(
        chat("c1"), {"id": "c2", "messages": [{"role": "bot", "content": "x"}]}, 7, chat("c3")
    )
    assert counts(answer) == (2, 0, 0, 2)
    wrong, no_object = answer["errors"]
    assert (wrong["index"], wrong["id"], wrong["field"]) == (1, "c2", "messages[0].role")
    assert (no_object["index"], no_object["code"]) == (2, "invalid")
    assert ChatSource.objects.get().refused == 2


def test_the_same_chat_twice_in_one_request_grows(sender: Sender) -> None:
    assert counts(sender.send(chat("c1"), chat("c1", HI, HELLO))) == (1, 1, 0, 0)
    assert Chat.objects.get().message_count == 2


def test_a_request_with_a_key_is_answered_once(sender: Sender) -> None:
    body = {"chats": [chat("c1")]}
    first = sender.post(body, key="k1")
    again = sender.post(body, packed=True, key="k1")
    assert first.json() == again.json() and first.json()["created"] == 1
    assert again.headers["Idempotent-Replayed"] == "true"
    other = sender.post({"chats": [chat("c2")]}, key="k1")
    assert (other.status_code, other.json()["code"]) == (409, "other_body")
    assert not Chat.objects.filter(external_id="c2").exists()


def test_a_key_at_work_waits_and_a_dead_one_is_taken_over(sender: Sender, lead: User) -> None:
    body = {"chats": [chat("c1")]}
    sender.post(body, key="k1")
    row = IngestRequest.objects.get()
    IngestRequest.objects.update(answer=None, started_at=timezone.now())
    waiting = sender.post(body, key="k1")
    assert (waiting.status_code, waiting.json()["code"]) == (409, "in_progress")
    IngestRequest.objects.update(started_at=row.started_at - service.LONGEST_REQUEST * 2)
    assert sender.post(body, key="k1").json()["unchanged"] == 1
    IngestRequest.objects.update(started_at=row.started_at - service.KEYS_KEPT * 2)
    service.ingest_sweep()
    assert not IngestRequest.objects.exists()


def test_bodies_are_limited(sender: Sender, settings: Any) -> None:
    many = sender.post({"chats": [{}] * (service.MOST_CHATS + 1)})
    assert many.status_code == 400 and "5,000 is the limit" in many.json()["chats"][0]
    settings.LACE_INGEST_MB = 1
    large = sender.post(b'{"chats": ["' + b"a" * 1024**2 + b'"]}', packed=True)
    assert large.status_code == 400 and "unpacked body is larger" in large.json()["detail"]
    broken = sender.post(b"no gzip", encoding="gzip")
    assert broken.status_code == 400 and "no gzip" in broken.json()["detail"]
    assert sender.post({"chats": [], "source": "No Source"}).status_code == 400
    assert sender.post({"chats": [], "sauce": "x"}).status_code == 400
    assert not Chat.objects.exists()


def test_originals_are_never_stored_where_redaction_is_on(sender: Sender) -> None:
    settings = IngestSettings.objects.create(redact=["email"], regions=["GB"])
    mail = {"role": "user", "content": "I am ann@example.com, call +44 20 7946 0958"}
    answer = sender.send(chat("ann@example.com/1", mail, metadata={"mail": "ann@example.com"}))
    assert answer["redactions"] == {"email": 2}
    row = Chat.objects.get()
    stored = json.dumps([row.external_id, row.messages, row.metadata, row.redactions])
    assert "ann@example.com" not in stored and "[email 1]" in stored
    assert "+44 20 7946 0958" in row.messages[0]["content"]  # phones are not redacted here
    assert row.redactions[0]["kind"] == "email" and row.redactions[0]["count"] == 2
    # Sent again and grown, it is the same chat with the same placeholders.
    assert counts(sender.send(chat("ann@example.com/1", mail, HELLO))) == (0, 1, 0, 0)
    assert ChatSource.objects.get().redactions == {"email": 3}
    settings.redact = []
    settings.save()


def test_a_chat_of_before_is_redacted_when_it_comes_again(sender: Sender) -> None:
    mail = {"role": "user", "content": "I am ann@example.com"}
    sender.send(chat("c1", mail))
    IngestSettings.objects.create(redact=["email"])
    assert counts(sender.send(chat("c1", mail, HELLO))) == (0, 1, 0, 0)
    assert Chat.objects.get().messages[0]["content"] == "I am [email 1]"


def test_topics_come_from_the_sender_then_from_rules(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    IngestSettings.objects.create(topic_rules=[{"topic": "greeting", "any": ["hi"]}])
    sender.send(chat("c1"), chat("c2", topic="sent"), chat("c3", HELLO))
    topics = dict(Chat.objects.values_list("external_id", "topic__key"))
    assert topics == {"c1": "greeting", "c2": "sent", "c3": Topic.UNKNOWN}
    monkeypatch.setattr(service, "MOST_TOPICS", Topic.objects.count())
    answer = sender.send(chat("c4", topic="one too many"), chat("c5"))
    assert counts(answer) == (1, 0, 0, 1) and answer["errors"][0]["field"] == "topic"


def test_a_token_for_other_things_sends_nothing(lead: User) -> None:
    sender = Sender(lead)
    sender.token = token_create(user=lead, name="x", scopes=["manage_labeling"], days=None).secret
    assert sender.post({"chats": [chat("c1")]}).status_code == 404
    author = Client()
    author.force_login(make_user("ada", Role.AUTHOR))
    assert author.post(URL, "{}", content_type="application/json").status_code == 404


def test_queries_do_not_grow_with_the_chats(sender: Sender, django_assert_max_num_queries: Any) -> None:
    sender.send(*(chat(f"c{n}") for n in range(50)))
    grown = [chat(f"c{n}", HI, HELLO, topic=f"t{n % 3}") for n in range(50)]
    with django_assert_max_num_queries(30):
        assert counts(sender.send(*grown)) == (0, 50, 0, 0)
    facts = [chat(f"c{n}", HI, HELLO, variant="b", experiment="e") for n in range(50)]
    with django_assert_max_num_queries(30):
        assert counts(sender.send(*facts)) == (0, 50, 0, 0)
    assert ChatSetMember.objects.count() == 0
