"""What an agent reads: the documents of pages and API, without the holdout and within limits."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Exists, OuterRef

from alignment.agents.core import MOST_CHARACTERS, PAGE, cut, fenced, page_of, transcript
from alignment.chat_detail.queries.page import labels_and_adjudication, prompt_number
from alignment.chat_detail.queries.verdict_detail import verdict_detail
from alignment.comparison.queries.disclosure import hide_small_counts
from alignment.misalignments.queries.misalignment_list import (
    STATES,
    DisagreementSelection,
    MisalignmentFilter,
    MisalignmentRow,
    hidden_runs,
    misalignment_rows,
    misalignments_listed,
    open_disagreement_counts,
)
from alignment.models.misalignments import Misalignment
from alignment.models.regressions import RegressionTest
from alignment.prompts.queries.criterion_list import criterion_list, criterion_row
from alignment.prompts.queries.version_page import row_of
from alignment.prompts.queries.versions import VersionRow, champion_of, version_rows, with_figures
from alignment.prompts.serializers import criterion_body, version_body, version_detail_body
from alignment.regression.queries.page import RUNS, regression_tests
from alignment.regression.queries.test_list import RegressionFilter, regression_rows
from alignment.regression.serializers import regression_body, regression_row
from common.problems import InputProblem
from evaluation.knowledge.queries import article_titles
from evaluation.models.prompts import ArticleVersion, PromptDraft
from evaluation.models.runs import FINISHED, Run, Verdict
from evaluation.prompts.queries.drafts import draft_of
from evaluation.prompts.queries.versions import newest_versions
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.queries.redact_errors import redact_errors
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split
from labeling.models.labels import Consensus
from labeling.models.people import AuditEvent, User, Workspace
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown
from labeling.rubric.queries.guidelines import guideline_in_force
from labeling.rubric.queries.texts import RubricTexts, rubric_texts

OPEN_SPLITS = (Split.TRAIN.value, Split.DEV.value)
PROPOSED = "draft proposed"  # the audit log's verb
NO_HOLDOUT = "Agents work on train and dev only."
# What stays between an agent and a release, and who works here: no reading matter of theirs.
_LEFT_OUT = ("needs_override", "warnings", "created_by", "released", "tests", "author", "releases")

Document = dict[str, Any]


# ---------- criteria and texts ----------


def criteria_document(*, user: User) -> Document:
    """Return every active criterion with its champion and its open disagreements."""
    rows = criterion_list(user=user)
    counts = open_disagreement_counts([row.criterion for row in rows], user=user)
    listed = [criterion_body(row) | {"disagreements": counts.get(row.criterion.pk, 0)} for row in rows]
    return {"criteria": listed, "chat_sets": _chat_sets()}


def criterion_document(*, user: User, key: str) -> Document:
    """Return a criterion with the champion's alignment outside the holdout."""
    row = criterion_row(criterion_named(key), user=user)
    measured = version_body(row.champion)["measured"] if row.champion else []
    return criterion_body(row) | {"measured": _without_holdout(measured)}


def rubric_document(*, rubric: str) -> Document:
    """Return the texts that raters read about each criterion."""
    found = _rubric(rubric)
    criteria = []
    for one in found.criteria:
        text = one.version
        criteria.append(
            {
                "key": one.criterion.key,
                "dimension": one.criterion.dimension.key,
                "tier": one.criterion.tier,
                "critical": one.criterion.critical,
                "text_version": text.number,
                "question": text.question,
                "definition": text.definition,
                "passes_when": text.passes_when,
                "allow_na": text.allow_na,
                "guideline": text.guideline,
                "true_example": text.true_example,
                "false_example": text.false_example,
            }
        )
    return {"rubric": found.rubric.name, "criteria": criteria}


def guideline_document(*, rubric: str) -> Document:
    """Return the raters' guideline in force; number 0 without one."""
    found = _rubric(rubric).rubric
    guideline = guideline_in_force(rubric_id=found.pk)
    text = guideline.text if guideline else ""
    return {
        "rubric": found.name,
        "number": guideline.number if guideline else 0,
        "text": cut(text, MOST_CHARACTERS),
    }


def knowledge_list(*, page: int) -> Document:
    """Return keys and titles of the knowledge articles."""
    rows, place = page_of(article_titles(), page=page)
    return {"articles": [{"key": key, "title": title} for key, title in rows], **place}


def article_document(*, key: str, version: int, start: int) -> Document:
    """Return a version of an article from a character on; version 0 is the one in use."""
    rows = ArticleVersion.objects.filter(article__key=key).order_by("-number")
    row = rows.filter(number=version).first() if version else rows.first()
    if row is None:
        raise InputProblem(f"There is no article {key!r}" + (f" of version {version}." if version else "."))
    text, following = _part(row.text, start)
    return {"key": key, "version": row.number, "title": row.title, "text": text, "next_start": following}


def versions_document(*, user: User, key: str, page: int) -> Document:
    """Return the versions of a prompt, newest first, without texts."""
    rows, place = page_of(_versions(key), page=page)
    return {
        "criterion": key,
        "versions": [_version(version_body(row)) for row in with_figures(rows, of=rows, user=user)],
        **place,
    }


def prompt_document(*, user: User, key: str, version: int, compare_with: int) -> Document:
    """Return a version's text and examples; version 0 is the champion. Also the changes since another."""
    rows = _versions(key)
    row = row_of(rows, version) if version else champion_of(rows) or next(iter(rows), None)
    other = row_of(rows, compare_with) if compare_with else None
    if row is None or (compare_with and other is None):
        raise InputProblem(f"{key} has no version {compare_with if row else version}.")
    figures = with_figures([row], of=[row], user=user)[0]
    body = _version(version_detail_body(figures, user=user, other=other))
    return {"criterion": key, **body, "text": cut(body["text"], MOST_CHARACTERS), "sections": None}


def draft_document(*, user: User, key: str) -> Document:
    """Return the author's own open draft; revision 0 without one."""
    draft = draft_of(criterion=criterion_named(key), author=user)
    if draft is None:
        return {"criterion": key, "revision": 0}
    return {
        "criterion": key,
        "revision": draft.revision,
        "base": draft.base.number,
        "origin": draft.origin,
        "text": draft.text,
        "examples": _visible_examples(draft.examples, user),
    }


def proposed_revision(draft: PromptDraft) -> int:
    """Return the revision of the draft that an agent proposed last; 0 for none. A person's edit raises it."""
    proposals = AuditEvent.objects.filter(
        object_type=PromptDraft._meta.label_lower, object_id=draft.pk, verb=PROPOSED
    )
    newest = proposals.order_by("-pk").first()
    return int(newest.detail["revision"]) if newest else 0


# ---------- disagreements and chats ----------


def disagreements_document(
    *, user: User, criterion: str, split: str, state: str, cause: str, page: int
) -> Document:
    """Return one page of disagreements on train and dev chats."""
    if split and split not in OPEN_SPLITS:
        raise InputProblem(NO_HOLDOUT)
    if state not in STATES:
        raise InputProblem(f"state must be one of {', '.join(name for name in STATES if name)}.")
    if cause and cause not in (*Misalignment.Cause.values, "none"):
        raise InputProblem(f"cause must be one of {', '.join(Misalignment.Cause.values)} or none.")
    if criterion:
        criterion_named(criterion)
    only = MisalignmentFilter(criterion=criterion, cause=cause, state=state, split=split)
    shown = misalignments_listed(user=user, without=hidden_runs(user=user))
    rows, place = page_of(DisagreementSelection(shown, only, user=user), page=page)  # type: ignore[arg-type]
    secret, splits = _secret(), _splits([item.chat_id for item in rows])
    listed = [_disagreement(row, splits, secret) for row in misalignment_rows(rows)]
    return {"disagreements": listed, **place}


def chat_document(*, user: User, chat: int, criterion: str, run: int, first_message: int) -> Document:
    """Return a chat with labels and verdict on one criterion, and how the judge decided."""
    row = chats_shown(user=user).select_related("topic").filter(pk=chat).first()
    asked, secret = criterion_named(criterion), _secret()
    judged = _judged(user, row, asked, run) if row else None
    if row is None or (run and judged is None):
        raise InputProblem(f"There is no chat {chat}" + (f" in run {run}." if run else "."))
    place = {"chat": row, "criterion": asked}
    consensus = Consensus.objects.filter(**place).first()
    labels = labels_and_adjudication(chat=row, criterion_id=asked.pk)
    decision = labels["adjudication"]
    return {
        "chat_number": row.pk,
        "topic": row.topic.name,
        "splits": sorted(_splits([row.pk]).get(row.pk, ())),
        "criterion": criterion,
        "consensus": consensus.state if consensus else "unlabelled",
        "labels": [_label(one, secret) for one in labels["labels"]],
        "adjudication": _label({"value": decision.value, "rationale": decision.reason}, secret)
        if decision
        else None,
        "judge": _judgement(judged, row, asked, secret) if judged else None,
        **transcript(core_chat(row).messages, first=first_message, secret=secret),
    }


def _judged(user: User, chat: Chat, criterion: Criterion, run: int) -> Run | None:
    """Return the run, or without a number the newest finished one that judged chat and criterion."""
    runs = runs_open_to(user).filter(run_chats__chat=chat, run_chats__split__in=("", *OPEN_SPLITS))
    if run:
        return runs.filter(pk=run).first()
    verdicts = Verdict.objects.filter(run=OuterRef("pk"), chat=chat, criterion=criterion)
    done = runs.filter(Exists(verdicts), state__in=FINISHED).exclude(purpose=Run.Purpose.TRY)
    return done.order_by("-pk").first()


def _judgement(run: Run, chat: Chat, criterion: Criterion, secret: bytes) -> Document:
    verdict = Verdict.objects.filter(run=run, chat=chat, criterion=criterion).first()
    version = newest_versions(criteria=[criterion])[criterion.pk]
    detail = verdict_detail(run, chat, verdict, criterion, version)
    steps = [
        {"step": step.title, "decides": step.decides, "text": _fenced("answer", step.text, secret)}
        for step in detail["steps"]
    ]
    return {
        "run": run.pk,
        "prompt_version": prompt_number(run, criterion),
        "engine": detail["engine"],
        "state": verdict.state if verdict else "none",
        "verdict": verdict.value if verdict else None,
        "explanation": _fenced("explanation", verdict.explanation if verdict else "", secret),
        "reasoning": steps,
    }


def _disagreement(row: MisalignmentRow, splits: Mapping[int, set[str]], secret: bytes) -> Document:
    item = row.item
    return {
        "disagreement": item.pk,
        "chat_number": item.chat_id,
        "criterion": item.criterion.key,
        "splits": sorted(splits.get(item.chat_id, ())),
        "state": item.state,
        "cause": item.cause,
        "consensus": row.human,
        "verdict": row.verdict.value if row.verdict else None,
        "outcome": row.outcome,
        "run": item.newest_run_id,
        "rationale": _fenced("rationale", row.rationale, secret),
        "note": _fenced("note", item.note, secret),
    }


def _label(label: Mapping[str, Any], secret: bytes) -> Document:
    """Return a label without the name of its rater."""
    return {
        "value": label["value"],
        "rationale": _fenced("rationale", label["rationale"], secret),
        "turns": label.get("turns", []),
    }


def _fenced(kind: str, text: str, secret: bytes) -> str:
    return fenced(kind=kind, text=text, secret=secret) if text.strip() else ""


# ---------- regression tests ----------


def tests_document(*, user: User, criterion: str, page: int) -> Document:
    """Return the regression tests on dev, newest first."""
    if criterion:
        criterion_named(criterion)
    tests = regression_rows(RegressionFilter(criterion)).filter(split=Split.DEV).order_by("-pk")
    begin = (page - 1) * PAGE
    rows, total = list(tests[begin : begin + PAGE]), tests.count()
    hide_small_counts(rows, user=user)
    following = page + 1 if begin + PAGE < total else None
    listed = [_less(regression_row(test)) for test in rows]
    return {"tests": listed, "total": total, "page": page, "next_page": following}


def test_document(*, user: User, test: int) -> Document:
    """Return a regression test on dev: its state, figures and the gate's reasons."""
    row = regression_tests().filter(pk=test, split=Split.DEV).first()
    if row is None:
        raise InputProblem(f"There is no regression test {test} on the dev split.")
    hide_small_counts([row], user=user)
    redact_errors([run for name, _ in RUNS if (run := getattr(row, name))], user=user)
    return _less(regression_body(row))


def open_test_of(*, user: User) -> RegressionTest | None:
    """Return a test that this user has started and that is not decided yet."""
    rows = RegressionTest.objects.filter(created_by=user).order_by("-pk")
    return next((row for row in rows[:PAGE] if row.is_open), None)


# ---------- shared ----------


def criterion_named(key: str) -> Criterion:
    """Return the criterion with its rubric and dimension. Raises InputProblem."""
    row = Criterion.objects.select_related("dimension", "rubric").filter(key=key).first()
    if row is None:
        raise InputProblem(f"There is no criterion {key!r}: list_criteria has all.")
    return row


def _versions(key: str) -> list[VersionRow]:
    criterion = criterion_named(key)
    return version_rows(criteria=[criterion])[criterion.pk]


def _version(body: Document) -> Document:
    """Return a version without people, and without tests and figures of the holdout."""
    tests = [one for one in body["tests"] if one["split"] == Split.DEV]
    return _less(body) | {"tests": tests, "measured": _without_holdout(body["measured"])}


def _without_holdout(rows: list[Document]) -> list[Document]:
    return [one for one in rows if one["split"] in OPEN_SPLITS]


def _less(body: Mapping[str, Any]) -> Document:
    return {name: value for name, value in body.items() if name not in _LEFT_OUT}


def _visible_examples(lines: list[Document], user: User) -> list[Document]:
    named = [line["chat"] for line in lines]
    shown = set(chats_shown(user=user).filter(external_id__in=named).values_list("external_id", flat=True))
    return [line for line in lines if line["chat"] in shown]


def _rubric(name: str) -> RubricTexts:
    rows = rubric_texts(unclear={})
    found = [row for row in rows if not name or row.rubric.name == name]
    if len(found) != 1:
        names = ", ".join(repr(row.rubric.name) for row in rows) or "none"
        raise InputProblem(f"Name a rubric: {names}.")
    return found[0]


def _chat_sets() -> list[Document]:
    """Return the sets with labelled dev chats to test on: their names and rubrics."""
    dev = ChatSetMember.objects.filter(split=Split.DEV).values("chat_set")
    rows = ChatSet.objects.listed().filter(pk__in=dev).select_related("rubric").order_by("name")
    return [{"set": row.name, "rubric": row.rubric.name} for row in rows]


def _splits(chats: list[int]) -> dict[int, set[str]]:
    """Return the splits of chats that are visible, hence of none that is held out."""
    found: dict[int, set[str]] = {}
    rows = ChatSetMember.objects.filter(chat__in=chats, split__in=OPEN_SPLITS)
    for chat, split in rows.values_list("chat_id", "split"):
        found.setdefault(chat, set()).add(split)
    return found


def _part(text: str, start: int) -> tuple[str, int | None]:
    end = start + MOST_CHARACTERS
    return text[start:end], end if end < len(text) else None


def _secret() -> bytes:
    return bytes(Workspace.current().fence_secret)
