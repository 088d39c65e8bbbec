"""What prompt versions were measured to be: people against the judge, by version, set and split."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.db.models.functions import JSONObject

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.core.disclosure_limit import FEWEST
from alignment.comparison.queries.cached_documents import hash_of, older_than, replace_kept
from alignment.comparison.queries.disclosure import held_counts
from alignment.models.reports import Report
from alignment.reports.core.judge_side import judge_rates
from alignment.reports.core.status import Decision, LeftOpen, decide_status
from alignment.reports.queries.reports import BODY_VERSION as REPORT_VERSION
from alignment.reports.queries.reports import POLICY
from alignment.reports.queries.weighted_rates import KEPT_BACK, decision_of, drawn_rates, estimates_of
from alignment.statistics.agreement import Confusion, leave_one_rater_out
from alignment.statistics.estimates import Estimate
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import FINISHED, Run, Verdict
from labeling.models.chats import Split
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import held_out, reads_holdout

BODY_VERSION = 3
# Tries are of texts that nobody has saved; repeats ask the same judge again.
MEASURING = (Run.Purpose.EVALUATION, Run.Purpose.REGRESSION)
# What makes two judges comparable but for their prompts.
RECIPE = (
    "endpoint",
    "model",
    "roles",
    "samples",
    "size",
    "layout",
    "role_in",
    "ablation",
    "windows",
    "knowledge",
)

Counts = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """A version on one split of a set ('' where the run knew none): its newest finished run there.

    `ceiling` is the human balanced accuracy on the same chats; `silent` counts chats that people answered
    True or False and the judge neither, `refrained` those of people's True and False whose calls did not
    fail; `recipe` is equal for runs whose judges differ in prompts alone. Of `drawn` chats the labels were
    drawn by verdict: then the rates are weighted, as in the report, and do not follow from the table.
    """

    run: Run
    criterion: Criterion
    split: str
    table: Confusion
    ceiling: float | None
    silent: int
    refrained: tuple[int, int]
    recipe: str
    drawn: int
    rates: dict[str, Estimate]  # balanced accuracy, TPR and TNR
    decided: Decision | None = None  # by the report, where labels were drawn by verdict

    @property
    def place(self) -> str:
        """Set and split as a word of an address."""
        return f"{self.run.chat_set_id}-{self.split or 'all'}"

    @property
    def where(self) -> str:
        """Set and split in words."""
        name = self.run.chat_set.name if self.run.chat_set else "no set"
        return f"{name}, {self.split}" if self.split else name

    @cached_property
    def figures(self) -> dict[str, Any]:
        """The same as a report has them, for lanes and plots."""
        shown = {name: estimate.as_json() for name, estimate in self.rates.items()}
        return {**shown, "human": {"ceiling": self.ceiling}}

    @cached_property
    def decision(self) -> Decision:
        """Whether the judge may be called aligned here, and why."""
        if self.decided is not None:
            return self.decided
        return decide_status(
            table=self.table,
            tpr=self.rates["tpr"],
            tnr=self.rates["tnr"],
            balanced_accuracy=self.rates["balanced_accuracy"],
            open_true=LeftOpen(self.refrained[0], self.refrained[0]),
            open_false=LeftOpen(self.refrained[1], self.refrained[1]),
            policy=POLICY,
            tier=self.criterion.tier,
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """What one version was measured to be: newest run first, of a run dev first.

    `few`: held-out chats are left out, for the user may not be told of so few.
    """

    rows: tuple[Measured, ...] = ()
    few: bool = False


def measured(
    criteria: Collection[Criterion],
    *,
    user: User | AnonymousUser,
    contents: Collection[str] | None = None,
) -> dict[tuple[int, str], Figures]:
    """By criterion id and content hash of its prompt; `contents` narrows it to these hashes.

    Versions with the same text and examples were measured together. Counts are kept with the run until a
    human answer changes. Of a split with 1 to 9 held-out chats that are compared, who may not read them gets
    the counts without these, and no rates where labels were drawn by verdict. Four queries, at most six for
    who may not; some more to count anew.
    """
    prompts = JudgePrompt.objects.filter(criterion__in=criteria)
    if contents is not None:
        prompts = prompts.filter(prompt_version__content_hash__in=contents)
    asked = list(prompts.values_list("judge_id", "criterion_id", "prompt_version__content_hash", "group"))
    runs = _newest_runs(asked)
    by_id = {row.pk: row for row in criteria}
    pairs = {(run.pk, criterion): run for (criterion, *_), run in runs.items()}
    counted = [(run, by_id[criterion]) for (_, criterion), run in pairs.items()]
    counts = _counts(counted)
    few: set[tuple[int, int]] = set()
    if not reads_holdout(user=user):
        counts, few = _without_few(counted, counts)
    groups = {(judge, criterion): group for judge, criterion, _, group in asked}
    found: dict[tuple[int, str], list[Measured]] = {}
    taken = set()
    for (criterion, content, chat_set, _), run in runs.items():
        rows = found.setdefault((criterion, content), [])
        for split, body in counts[run.pk, criterion].items():
            if (criterion, content, chat_set, split) not in taken:
                taken.add((criterion, content, chat_set, split))
                recipe = _recipe(run, groups[run.judge_id, criterion])
                rows.append(_measured(run, by_id[criterion], split, body, recipe))
    less = {key[:2] for key, run in runs.items() if (run.pk, key[0]) in few}
    return {key: Figures(tuple(rows), few=key in less) for key, rows in found.items()}


def _measured(run: Run, criterion: Criterion, split: str, body: Counts, recipe: str) -> Measured:
    true, false = body["refrained"]
    table, drawn = Confusion(*body["table"]), body["drawn"]
    return Measured(
        run=run,
        criterion=criterion,
        split=split,
        table=table,
        ceiling=body["ceiling"],
        silent=body["silent"],
        refrained=(true, false),
        recipe=recipe,
        drawn=drawn["chats"] if drawn else 0,
        rates=estimates_of(drawn) if drawn else judge_rates(table),
        decided=decision_of(drawn) if drawn else None,
    )


def _newest_runs(asked: Iterable[tuple[int, int, str, int]]) -> dict[tuple[int, str, int, str], Run]:
    """By criterion, content, set and the split asked for; newest first. Runs over a few chats come last."""
    contents: dict[int, list[tuple[int, str]]] = {}
    for judge, criterion, content, _ in asked:
        contents.setdefault(judge, []).append((criterion, content))
    rows = Run.objects.filter(
        judge__in=list(contents), chat_set__isnull=False, state__in=FINISHED, purpose__in=MEASURING
    ).values_list("pk", "judge_id", "chat_set_id", "options")
    ordered = sorted(rows, key=lambda row: (row[3].get("limit") is None, row[0]), reverse=True)
    chosen: dict[tuple[int, str, int, str], int] = {}
    for pk, judge, chat_set, options in ordered:
        for criterion, content in contents[judge]:
            chosen.setdefault((criterion, content, chat_set, options.get("split") or ""), pk)
    found = Run.objects.select_related("judge", "chat_set").in_bulk(set(chosen.values()))
    return {key: found[pk] for key, pk in chosen.items()}


def _recipe(run: Run, group: int) -> str:
    config = run.judge.config
    groups = config.get("groups", [])
    engine = groups[group]["engine"] if group < len(groups) else run.judge.engine
    return json.dumps([engine, *(config.get(name) for name in RECIPE)], sort_keys=True)


# ---------- counts, kept with the run ----------


def _counts(pairs: Collection[tuple[Run, Criterion]]) -> dict[tuple[int, int], dict[str, Counts]]:
    """By run and criterion id: the counts of each split, in order."""
    pins = {(run.pk, criterion.pk): _pin(run, criterion) for run, criterion in pairs}
    kept = dict(Report.objects.filter(pin__in=pins.values()).values_list("pin", "body"))
    missing = [(run, criterion) for run, criterion in pairs if pins[run.pk, criterion.pk] not in kept]
    if missing:
        kept |= {row.pin: row.body for row in _count_anew(missing, pins)}
    return {pair: _in_order(kept[pin]) for pair, pin in pins.items()}


def _count_anew(
    pairs: Collection[tuple[Run, Criterion]], pins: Mapping[tuple[int, int], str]
) -> list[Report]:
    """Store the counts in the place of those from before an answer changed."""
    rows = {(run.pk, criterion.pk): _row(run, criterion, pins) for run, criterion in pairs}
    older = older_than(list(rows.values()))
    drawn = drawn_rates(pairs)
    for pair, splits in _counted(pairs).items():
        rows[pair].body = {
            split: body | {"drawn": drawn.get((*pair, split))} for split, body in splits.items()
        }
    replace_kept(list(rows.values()), older=older)
    return list(rows.values())


def _row(run: Run, criterion: Criterion, pins: Mapping[tuple[int, int], str]) -> Report:
    """Without its body."""
    return Report(
        kind=Report.Kind.MEASURED,
        run=run,
        chat_set=run.chat_set,
        against=CONSENSUS,
        pin=pins[run.pk, criterion.pk],
        subject=hash_of(_what(run, criterion)),
        policy=POLICY.version,
    )


def _pin(run: Run, criterion: Criterion) -> str:
    """It moves with every change of the human answers, and with the reports that rates are taken from."""
    forms = BODY_VERSION, REPORT_VERSION
    return hash_of([*_what(run, criterion), *forms, run.finished_at, criterion.labels_seq])


def _what(run: Run, criterion: Criterion) -> list[Any]:
    return [Report.Kind.MEASURED.value, run.pk, criterion.pk]


def _in_order(splits: Mapping[str, Counts]) -> dict[str, Counts]:
    order = [Split.DEV, Split.TRAIN, Split.HOLDOUT, ""]
    return {split: splits[split] for split in sorted(splits, key=order.index)}


def _without_few(
    pairs: Collection[tuple[Run, Criterion]], counts: Mapping[tuple[int, int], dict[str, Counts]]
) -> tuple[dict[tuple[int, int], dict[str, Counts]], set[tuple[int, int]]]:
    """The same, but splits with too few held-out chats are counted without them, and where; not kept."""
    held = held_counts({run.pk for run, _ in pairs}, criteria={criterion.pk for _, criterion in pairs})
    few = {
        (run.pk, criterion.pk): {split for split, n in held[run.pk, criterion.key].items() if n < FEWEST}
        for run, criterion in pairs
        if (run.pk, criterion.key) in held
    }
    again = [(run, criterion) for run, criterion in pairs if few.get((run.pk, criterion.pk))]
    if not again:
        return dict(counts), set()
    fresh, found = _counted(again, less=Q(chat__in=held_out())), dict(counts)
    for run, criterion in again:
        pair = run.pk, criterion.pk
        found[pair] = {split: body for split, body in counts[pair].items() if split not in few[pair]}
        for split in few[pair] & fresh[pair].keys():
            drawn = KEPT_BACK if counts[pair][split]["drawn"] else None
            found[pair][split] = fresh[pair][split] | {"drawn": drawn}
        found[pair] = _in_order(found[pair])
    return found, {(run.pk, criterion.pk) for run, criterion in again}


def _counted(
    pairs: Iterable[tuple[Run, Criterion]], *, less: Q | None = None
) -> dict[tuple[int, int], dict[str, Counts]]:
    """One query, whatever the number of pairs; `less` says which verdicts to leave out.

    Labels that were drawn by verdict count as they are.
    """
    wanted: dict[int, list[int]] = {}
    for run, criterion in pairs:
        wanted.setdefault(criterion.pk, []).append(run.pk)
    cells: dict[tuple[int, int], dict[str, list[tuple[Any, ...]]]] = {
        (run, criterion): {} for criterion, runs in wanted.items() for run in runs
    }
    for run, criterion, split, people, value, state, n in _patterns(wanted, less):
        if people is not None:
            cells[run, criterion].setdefault(split, []).append((people, value, state, n))
    return {pair: {split: _body(rows) for split, rows in splits.items()} for pair, splits in cells.items()}


def _patterns(wanted: Mapping[int, list[int]], less: Q | None) -> Any:
    """How many chats there are of each kind: run, criterion, split, consensus or None, verdict, its
    state, n.

    NB: a finished run has a verdict on most chats, and a page shows many runs: what people said is looked up
    once for each of them, whatever the number of columns.
    """
    chosen = Q()
    for criterion, runs in wanted.items():
        chosen |= Q(criterion=criterion, run__in=runs)
    if less is not None:
        chosen &= ~less
    people = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    said = people.values(said=JSONObject(state="state", true="n_true", false="n_false", na="n_na"))
    rows = Verdict.objects.filter(chosen, run__run_chats__chat=F("chat")).annotate(people=Subquery(said))
    kinds = ("run_id", "criterion_id", "run__run_chats__split", "people", "value", "state")
    return rows.values_list(*kinds).annotate(n=Count("pk")).order_by()


def _body(rows: Iterable[tuple[Any, ...]]) -> Counts:
    """What is kept of one run, criterion and split; rows of consensus, verdict, state, chats."""
    table = {(people, judge): 0 for people in (True, False) for judge in (True, False, None)}
    given, refrained = [], {True: 0, False: 0}
    for people, value, state, n in rows:
        given.append((people["true"], people["false"], people["na"], n))
        if people["state"] in (Consensus.State.TRUE, Consensus.State.FALSE):
            said = people["state"] == Consensus.State.TRUE
            table[said, value] += n
            if value is None and state != Verdict.State.FAILED:
                refrained[said] += n
    counts = np.array(given, dtype=np.int64)
    pairs = ((True, True), (True, False), (False, True), (False, False))
    return {
        "table": [table[pair] for pair in pairs],
        "silent": table[True, None] + table[False, None],
        "refrained": [refrained[True], refrained[False]],
        "ceiling": leave_one_rater_out(counts[:, :3], weights=counts[:, 3]).balanced_accuracy,
    }
