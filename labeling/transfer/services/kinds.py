"""Kinds of imports that labeling itself takes: chats and labels."""

import json
from pathlib import Path

from common.imports import ImportKind, Options, Target
from common.jsonl import ImportResult
from labeling.chats.services.chats import chats_check, chats_import
from labeling.transfer.services.importers import tool_labels_import
from labeling.transfer.services.labels import labels_import


def _chats_store(path: Path, options: Options) -> ImportResult:
    chat_set = str(options.get("set", ""))
    return chats_import(
        path=path,
        set_name=chat_set,
        rubric_name=str(options.get("rubric", "")) if chat_set else "",
        split=str(options.get("split", "")) if chat_set else "",
    )


def _chats_check(path: Path, options: Options) -> ImportResult:
    return chats_check(path=path, into_set=bool(options.get("set")))


def _labels_store(path: Path, options: Options) -> ImportResult:
    replace = bool(options.get("replace_accounts"))
    if tool := str(options.get("tool", "")):
        mapping = path.parent.parent / "tool_map.json"
        mapping.write_text(json.dumps(options.get("tool_map", {})), encoding="utf-8")
        return tool_labels_import(path=path, tool=tool, mapping_path=mapping, replace_accounts=replace)
    return labels_import(path=path, replace_accounts=replace)


CHATS = ImportKind(
    key="chats",
    label="Chats",
    unit="chats",
    about="Conversations of your chatbot, with a row for each chat or for each message.",
    targets=(
        Target(
            "id",
            "Chat id",
            also=(
                *("chatid", "conversationid", "sessionid", "dialogid", "dialogueid", "threadid", "ticketid"),
                *("caseid", "convid", "chat", "conversation", "session", "ticket", "uuid", "externalid"),
            ),
        ),
        Target("topic", "Topic", also=("category", "subject", "intent", "theme", "queue", "label")),
        Target(
            "started_at", "Start of the chat", "time", also=("start", "starttime", "chatdate", "openedat")
        ),
        Target("split", "Split", also=("partition", "fold")),
        Target("variant", "Variant", also=("version", "botversion", "arm")),
        Target("experiment", "Experiment", also=("test", "abtest")),
        Target("cluster", "Group of chats (same customer)", also=("customerid", "userid", "clientid")),
        Target("metadata", "Extra field", also=("title", "language", "lang", "channel", "country")),
    ),
    store=_chats_store,
    check=_chats_check,
    trial=False,
    batches=True,
    asks=frozenset({"new_set"}),
    derived={"labeling.consensus": {}},
    examples=(
        {
            "id": "c-1",
            "topic": "refund",
            "messages": [
                {"role": "user", "content": "Where is my refund?", "created_at": "2026-11-17T09:12:00Z"},
                {"role": "assistant", "content": "It is on its way.", "created_at": "2026-11-17T09:12:05Z"},
            ],
        },
        {
            "id": "c-2",
            "topic": "promo code",
            "messages": [
                {"role": "user", "content": "My code does not work", "created_at": "2026-11-17T09:15:00Z"},
                {"role": "assistant", "content": "It needs €40.", "created_at": "2026-11-17T09:15:06Z"},
            ],
        },
    ),
)

LABELS = ImportKind(
    key="labels",
    label="Labels",
    unit="labels",
    about="Answers of human raters, with a row for each answer, or a column for each criterion.",
    targets=(
        Target(
            "chat_id",
            "Chat id",
            also=("id", "chat", "conversationid", "sessionid", "ticketid"),
            required=True,
        ),
        Target("criterion", "Criterion", also=("metric", "question", "key"), required=True),
        Target(
            "rater",
            "Rater",
            also=("annotator", "labeler", "labeller", "reviewer", "user", "by"),
            required=True,
        ),
        Target("value", "Answer", "answer", also=("answer", "label", "result", "verdict"), required=True),
        Target("rationale", "Reason", also=("reason", "comment", "note", "notes", "explanation")),
        Target("created_at", "Time", "time", also=("time", "date", "timestamp", "labeledat")),
        Target("turns", "Evidence turns", "json", also=("evidenceturns",)),
        Target("evidence", "Evidence", "json"),
        Target("kind", "Kind of rater"),
        Target("post_reveal", "After reveal", "flag"),
        Target("version", "Criterion version", "whole"),
        Target("active_ms", "Active time (ms)", "whole"),
        Target("carried_from", "Carried over from"),
    ),
    store=_labels_store,
    asks=frozenset({"rater"}),
    wide=True,
    derived={"labeling.labelrevision": {}},
    examples=(
        {
            "chat_id": "c-1",
            "criterion": "polite",
            "rater": "Mara",
            "value": True,
            "rationale": "Friendly in every turn.",
        },
    ),
)
