"""import_chats: streamed, all or nothing, the same file again changes nothing."""

from pathlib import Path
from typing import Any

import pytest

from labeling.chats.core.splits import Candidate, splits_of
from labeling.chats.services import chats as chats_service
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from tests.factories.rows import make_rubric
from tests.files import chat, refused, run, write_jsonl

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.jsonl"


def members(name: str = "calibration") -> list[tuple[str, str]]:
    rows = ChatSetMember.objects.filter(chat_set__name=name).order_by("position")
    return list(rows.values_list("chat__external_id", "split"))


def counts(path: Path, *args: str) -> tuple[int, int, int]:
    document = run("import_chats", path, *args).document
    return document["created"], document["unchanged"], document["updated"]


def test_a_chat_is_stored_with_everything_its_line_says(path: Path) -> None:
    line = chat(
        "c1", "Hi", "Hello", topic="refund", started_at="2026-11-01T10:00:00", experiment="e", variant="v"
    )
    counts(write_jsonl(path, line | {"metadata": {"title": "A refund", "n": 1.5}}))
    stored = Chat.objects.select_related("topic").get()
    assert [(m["n"], m["role"], m["content"]) for m in stored.messages] == [
        (1, "user", "Hi"),
        (2, "assistant", "Hello"),
    ]
    assert (stored.topic.key, stored.experiment, stored.variant) == ("refund", "e", "v")
    assert stored.started_at is not None
    assert stored.started_at.isoformat() == "2026-11-01T10:00:00+00:00"
    assert (stored.message_count, stored.char_count, stored.metadata["n"]) == (2, 7, 1.5)
    assert stored.near_hash is not None


def test_a_chat_without_topic_is_in_the_topic_unknown(path: Path) -> None:
    counts(write_jsonl(path, chat("c1"), chat("c2", topic=" ")))
    assert set(Chat.objects.values_list("topic__key", flat=True)) == {Topic.UNKNOWN}


def test_the_same_file_again_changes_nothing(path: Path) -> None:
    write_jsonl(path, chat("c1", topic="a", metadata={"x": [1]}), chat("c2"))
    make_rubric("polite")
    assert counts(path, "--set", "calibration") == (2, 0, 0)
    before = list(Chat.objects.order_by("pk").values()), members()
    assert counts(path, "--set", "calibration") == (0, 2, 0)
    assert (list(Chat.objects.order_by("pk").values()), members()) == before


@pytest.mark.parametrize(
    "change",
    [{"topic": "b"}, {"metadata": {"x": 2}}, {"variant": "v2"}, {"started_at": "2026-01-01T00:00:00Z"}],
)
def test_changed_words_about_a_chat_update_it(path: Path, change: dict[str, Any]) -> None:
    line = chat("c1", topic="a", metadata={"x": 1}, variant="v1")
    counts(write_jsonl(path, line, chat("c2")))
    assert counts(write_jsonl(path, line | change, chat("c2"))) == (0, 1, 1)
    assert counts(path) == (0, 2, 0)


def test_a_later_line_that_says_less_takes_nothing_away(path: Path) -> None:
    counts(write_jsonl(path, chat("c1", topic="a", metadata={"x": 1}, variant="v1")))
    assert counts(write_jsonl(path, chat("c1"))) == (0, 1, 0)
    assert Chat.objects.get().topic.key == "a"


def test_other_messages_under_a_known_id_are_refused_and_nothing_is_written(path: Path) -> None:
    counts(write_jsonl(path, chat("c1")))
    message = refused("import_chats", write_jsonl(path, chat("c0"), chat("c1", "Something else")))
    assert "chats.jsonl line 2, id: 'c1' already exists with other messages" in message
    assert list(Chat.objects.values_list("external_id", flat=True)) == ["c1"]


def test_one_id_twice_in_a_file_is_one_chat_or_refused(path: Path) -> None:
    assert counts(write_jsonl(path, chat("c1"), chat("c1"))) == (1, 1, 0)
    message = refused("import_chats", write_jsonl(path, chat("c2", "A"), chat("c2", "B")))
    assert "line 2, id" in message


def test_chunks_do_not_change_the_outcome(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats_service, "CHUNK", (2, 1000))
    make_rubric("polite")
    rows = [chat(f"c{n}") for n in range(5)]
    assert counts(write_jsonl(path, *rows, chat("c1", topic="late")), "--set", "calibration") == (5, 0, 1)
    assert members() == [(f"c{n}", "dev") for n in range(5)]
    message = refused(
        "import_chats", write_jsonl(path, *(chat(f"d{n}") for n in range(4)), chat("d0", "Other"))
    )
    assert "line 5, id" in message
    assert Chat.objects.count() == 5


def test_the_set_keeps_the_files_order_and_grows_at_its_end(path: Path) -> None:
    make_rubric("polite")
    counts(write_jsonl(path, chat("b"), chat("a")), "--set", "calibration")
    counts(write_jsonl(path, chat("c"), chat("a")), "--set", "calibration", "--split", "train")
    assert members() == [("b", "dev"), ("a", "dev"), ("c", "train")]


def test_known_chats_join_a_second_set(path: Path) -> None:
    make_rubric("polite")
    counts(write_jsonl(path, chat("a")), "--set", "one")
    assert counts(path, "--set", "two", "--split", "holdout") == (0, 1, 0)
    assert (members("one"), members("two")) == ([("a", "dev")], [("a", "holdout")])


def test_a_split_in_the_line_wins_also_later(path: Path) -> None:
    make_rubric("polite")
    counts(
        write_jsonl(path, chat("a", split="train"), chat("b")), "--set", "calibration", "--split", "holdout"
    )
    assert members() == [("a", "train"), ("b", "holdout")]
    assert counts(write_jsonl(path, chat("a", split="dev"), chat("b")), "--set", "calibration") == (0, 1, 1)
    assert members() == [("a", "dev"), ("b", "holdout")]


def test_members_keep_their_split_and_it_is_said(path: Path) -> None:
    make_rubric("polite")
    counts(write_jsonl(path, chat("a")), "--set", "calibration")
    answer = run("import_chats", path, "--set", "calibration", "--split", "train")
    assert "chats that were already in it and keep their split: 1" in answer.notes
    assert members() == [("a", "dev")]


def test_proportions_go_by_the_hash_of_the_id(path: Path) -> None:
    make_rubric("polite")
    rows = [chat(f"c{n}", f"{n * 7919} parcels of {n}", f"all {n} are {n * n}") for n in range(60)]
    counts(write_jsonl(path, *rows), "--set", "calibration", "--split", "train=20,dev=40,holdout=40")
    stored = Chat.objects.values_list("external_id", "content_hash", "near_hash")
    shares = {"train": 0.2, "dev": 0.4, "holdout": 0.4}
    assert dict(members()) == splits_of([Candidate(*row) for row in stored], shares)
    assert len(set(dict(members()).values())) == 3


def test_a_later_near_duplicate_follows_the_member_it_resembles(path: Path) -> None:
    make_rubric("polite")
    text = " ".join(f"word{n}" for n in range(200))
    counts(write_jsonl(path, chat("first", text, split="holdout")), "--set", "calibration")
    rows = [chat(f"copy{n}", text.upper()) for n in range(8)]
    counts(write_jsonl(path, *rows), "--set", "calibration", "--split", "train=1,dev=1")
    assert {split for _, split in members()} == {"holdout"}


def test_the_rubric_may_be_left_out_only_while_there_is_one(path: Path) -> None:
    write_jsonl(path, chat("a"))
    assert "run import_rubric first" in refused("import_chats", path, "--set", "calibration")
    make_rubric("polite", name="One")
    make_rubric("brief", name="Two")
    assert "--rubric is needed for a new set: one of 'One', 'Two'" in refused(
        "import_chats", path, "--set", "s"
    )
    assert "no rubric 'Three'" in refused("import_chats", path, "--set", "s", "--rubric", "Three")
    counts(path, "--set", "s", "--rubric", "Two")
    assert ChatSet.objects.get().rubric.name == "Two"
    assert "belongs to 'Two'" in refused("import_chats", path, "--set", "s", "--rubric", "One")
    assert counts(path, "--set", "s") == (0, 1, 0)


def test_what_needs_a_set_is_refused_without_one(path: Path) -> None:
    write_jsonl(path, chat("a", split="train"))
    assert "--split needs --set" in refused("import_chats", path, "--split", "dev")
    assert "--rubric needs --set" in refused("import_chats", path, "--rubric", "One")
    assert "--split: 'test'" in refused("import_chats", path, "--set", "s", "--split", "test")
    assert "ignored field 'split' on 1 line" in run("import_chats", path).notes


def test_unknown_fields_are_counted_on_stderr(path: Path) -> None:
    answer = run("import_chats", write_jsonl(path, chat("a", lang="en"), chat("b", lang="de", raw=1)))
    assert "ignored field 'lang' on 2 lines" in answer.notes
    assert "ignored field 'raw' on 1 line\n" in answer.notes


# ---------- chats that belong together ----------


def clusters() -> dict[str, str]:
    return dict(Chat.objects.order_by("external_id").values_list("external_id", "cluster"))


def test_a_metadata_key_chosen_on_import_names_the_cluster(path: Path) -> None:
    write_jsonl(
        path,
        chat("c1", metadata={"customer": "ann"}),
        chat("c2", metadata={"customer": 7}),
        chat("c3", metadata={"channel": "web"}),
        chat("c4", metadata={"customer": "ann"}, cluster="b"),
    )
    assert counts(path, "--cluster-key", "customer") == (4, 0, 0)
    assert clusters() == {"c1": "ann", "c2": "7", "c3": "", "c4": "b"}


def test_a_later_import_with_the_key_adds_the_clusters(path: Path) -> None:
    write_jsonl(path, chat("c1", metadata={"customer": "ann"}), chat("c2"))
    assert counts(path) == (2, 0, 0)
    assert counts(path, "--cluster-key", "customer") == (0, 1, 1)
    assert counts(path, "--cluster-key", "customer") == (0, 2, 0)
    assert clusters() == {"c1": "ann", "c2": ""}


def test_a_key_that_no_chat_has_is_refused(path: Path) -> None:
    write_jsonl(path, chat("c1", metadata={"customer": "ann"}))
    problem = refused("import_chats", path, "--cluster-key", "costumer")
    assert "no chat of the file has metadata." in problem and "costumer" in problem
    assert not Chat.objects.exists()


def test_a_cluster_that_is_no_single_value_is_refused_by_line(path: Path) -> None:
    write_jsonl(path, chat("c1", metadata={"customer": "ann"}), chat("c2", metadata={"customer": ["ann"]}))
    problem = refused("import_chats", path, "--cluster-key", "customer")
    assert "line 2, metadata.customer: names the cluster" in problem


def test_chats_of_one_cluster_get_one_split_and_divided_clusters_are_reported(path: Path) -> None:
    make_rubric("polite")
    split = ("--set", "calibration", "--split", "dev=50,holdout=50", "--cluster-key", "customer")
    write_jsonl(path, *(chat(f"c{n}", f"Hi {n}", metadata={"customer": n % 6}) for n in range(30)))
    assert "more than one split" not in run("import_chats", path, *split).notes
    by_customer: dict[int, set[str]] = {}
    for chat_id, where in members():
        by_customer.setdefault(int(chat_id[1:]) % 6, set()).add(where)
    assert all(len(splits) == 1 for splits in by_customer.values())
    other = "holdout" if by_customer[0] == {"dev"} else "dev"
    write_jsonl(path, chat("c30", "Hi 30", metadata={"customer": 0}, split=other))
    assert "clusters with chats in more than one split: 1" in run("import_chats", path, *split).notes
