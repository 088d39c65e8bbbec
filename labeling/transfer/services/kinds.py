"""The import of labels, as the pages of imports know it."""

import json
from pathlib import Path

from common.imports import ImportKind, Options, Target
from common.jsonl import ImportResult
from labeling.transfer.services.importers import tool_labels_import
from labeling.transfer.services.labels import labels_import


def _labels_store(path: Path, options: Options) -> ImportResult:
    replace = bool(options.get("replace_accounts"))
    if tool := str(options.get("tool", "")):
        mapping = path.parent.parent / "tool_map.json"
        mapping.write_text(json.dumps(options.get("tool_map", {})), encoding="utf-8")
        return tool_labels_import(path=path, tool=tool, mapping_path=mapping, replace_accounts=replace)
    return labels_import(path=path, replace_accounts=replace)


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
