"""Metrics of prompt versions: consensus and judge compared, by version, set and split."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import JSONObject
from django.urls import reverse

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.core.disclosure_limit import MINIMUM_HOLDOUT_CHATS
from alignment.comparison.queries.cached_documents import (
    documents_stored,
    hash_of,
    is_storing,
    keep_documents,
    known_bodies,
    stored_ids,
)
from alignment.comparison.queries.disclosure import holdout_counts
from alignment.models.reports import Report
from alignment.prompts.queries.run_costs import run_costs_store
from alignment.reports.core.human_side import human_side
from alignment.reports.core.judge_side import judge_rates
from alignment.reports.core.status import Abstentions, Decision, HumanLabels, decide_status
from alignment.reports.queries.reports import BODY_VERSION as REPORT_VERSION
from alignment.reports.queries.reports import POLICY, SEED
from alignment.reports.queries.weighted_rates import WITHHELD, decision_of, estimates_of, weighted_rates
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate
from alignment.statistics.label_needs import LabelCounts
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import FINISHED, Run, Verdict
from labeling.models.chats import ChatSet, Split
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import holdout_chats, reads_holdout

BODY_VERSION = 4
# Tries test unsaved texts; repeated runs measure the same judge again.
MEASURING = (Run.Purpose.EVALUATION, Run.Purpose.REGRESSION)
# Judges that agree in these settings differ only in their prompts.
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
class VersionMetrics:
    """A version on one split of a set ('' if the run has none), from its newest finished run there.

    `labels`: labelled chats and the agreement between their raters. `unjudged`: chats by consensus, True and
    False, on which the judge gave neither. `recipe` is equal for runs whose judges differ only in prompts.
    `sampled`: chats whose labels were sampled by verdict; if there are any, the rates are weighted as in the
    report and do not follow from the table.
    """

    run: Run
    criterion: Criterion
    split: str
    table: Confusion
    labels: HumanLabels
    unjudged: tuple[int, int]
    recipe: str
    sampled: int
    rates: dict[str, Estimate]  # balanced accuracy, TPR and TNR
    reported_decision: Decision | None = None  # the report's; else it follows from table and labels
    outdated: bool = False  # whether answers have changed since it was counted

    @property
    def undecided(self) -> int:
        """Chats with a True or False consensus on which the judge gave neither."""
        return sum(self.unjudged)

    @property
    def label_counts(self) -> LabelCounts:
        """The labels, those on chats without a verdict included."""
        table, (true, false) = self.table, self.unjudged
        return LabelCounts(table.human_true + true, table.human_false + false, tier=self.criterion.tier)

    @property
    def place(self) -> str:
        """Set and split as part of an address."""
        return f"{self.run.chat_set_id}-{self.split or 'all'}"

    @property
    def where(self) -> str:
        """Set and split in words."""
        name = self.run.chat_set.name if self.run.chat_set else "no set"
        return f"{name}, {self.split}" if self.split else name

    @property
    def ceiling(self) -> float | None:
        """Human balanced accuracy on the same chats."""
        value: float | None = self.labels.agreement["ceiling"]["value"]
        return value

    @property
    def source(self) -> str:
        """Run, set, split and number of compared chats: a report of the same has the same figures."""
        chats = f"{self.table.n:,} chat{'' if self.table.n == 1 else 's'}"
        return f"run {self.run.pk}, {self.where}, {chats}"

    @property
    def report_url(self) -> str:
        """The criterion report with the same figures."""
        query = {"split": self.split} if self.split else None
        return reverse("alignment:criterion_report", args=[self.run.pk, self.criterion.key], query=query)

    @cached_property
    def figures(self) -> dict[str, Any]:
        """The rates in the form of a report, for lanes and plots."""
        shown = {name: estimate.as_json() for name, estimate in self.rates.items()}
        return {**shown, "human": {"ceiling": self.ceiling}}

    @cached_property
    def decision(self) -> Decision:
        """Whether the judge counts as aligned here, and why."""
        if self.reported_decision is not None:
            return self.reported_decision
        return decide_status(
            table=self.table,
            tpr=self.rates["tpr"],
            tnr=self.rates["tnr"],
            balanced_accuracy=self.rates["balanced_accuracy"],
            labels=self.labels,
            open_true=Abstentions(self.unjudged[0], self.unjudged[0]),
            open_false=Abstentions(self.unjudged[1], self.unjudged[1]),
            policy=POLICY,
            tier=self.criterion.tier,
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """The metrics of one version: newest run first, within a run dev first.

    `few`: holdout chats are excluded, because the user may not see figures on so few.
    """

    rows: tuple[VersionMetrics, ...] = ()
    few: bool = False


def version_metrics(
    criteria: Collection[Criterion],
    *,
    user: User | AnonymousUser,
    contents: Collection[str] | None = None,
    stored: bool = False,
) -> dict[tuple[int, str], Figures]:
    """Return metrics by criterion id and content hash of the prompt, optionally only for `contents`.

    With `stored` nothing is counted: runs without stored counts are left out, so that earlier figures stay
    until a worker has counted a new run, and counts from before the latest human answers are `outdated`.

    Versions with the same text and examples share their metrics. Counts are cached with the run until a human
    answer changes. If a split compares 1 to 9 holdout chats, a user without access to the holdout gets counts
    without them, and no rates if labels were sampled by verdict. Four queries, six for such a user, and a few
    more to update the cache.
    """
    prompts = JudgePrompt.objects.filter(criterion__in=criteria)
    if contents is not None:
        prompts = prompts.filter(prompt_version__content_hash__in=contents)
    judged = list(prompts.values_list("judge_id", "criterion_id", "prompt_version__content_hash", "group"))
    runs = _newest_runs(judged, counted=stored)
    by_id = {row.pk: row for row in criteria}
    pairs = {(run.pk, criterion): run for (criterion, *_), run in runs.items()}
    counted = [(run, by_id[criterion]) for (_, criterion), run in pairs.items()]
    counts, outdated = _stored(counted) if stored else (_counts(counted), set())
    few: set[tuple[int, int]] = set()
    if not reads_holdout(user=user):
        limited = _without_few(counted, counts) if not stored else _without_holdout(counted, counts, outdated)
        counts, few = limited
    groups = {(judge, criterion): group for judge, criterion, _, group in judged}
    metrics: dict[tuple[int, str], list[VersionMetrics]] = {}
    seen = set()
    for (criterion, content, chat_set, _), run in runs.items():
        rows = metrics.setdefault((criterion, content), [])
        for split, body in counts.get((run.pk, criterion), {}).items():
            if (criterion, content, chat_set, split) not in seen:
                seen.add((criterion, content, chat_set, split))
                recipe, old = recipe_of(run, groups[run.judge_id, criterion]), (run.pk, criterion) in outdated
                rows.append(_metrics(run, by_id[criterion], split, body, recipe, outdated=old))
    with_few = {key[:2] for key, run in runs.items() if (run.pk, key[0]) in few}
    return {key: Figures(tuple(rows), few=key in with_few) for key, rows in metrics.items()}


def _metrics(
    run: Run, criterion: Criterion, split: str, body: Counts, recipe: str, *, outdated: bool
) -> VersionMetrics:
    table, weighted = Confusion(*body["table"]), body["drawn"]
    return VersionMetrics(
        run=run,
        criterion=criterion,
        split=split,
        table=table,
        labels=HumanLabels(body["labelled"], body["unresolved"], body["human"]),
        unjudged=tuple(body["unjudged"]),
        recipe=recipe,
        sampled=weighted["chats"] if weighted else 0,
        rates=estimates_of(weighted) if weighted else judge_rates(table),
        reported_decision=decision_of(weighted) if weighted else None,
        outdated=outdated,
    )


def _newest_runs(
    judged: Iterable[tuple[int, int, str, int]], *, counted: bool
) -> dict[tuple[int, str, int, str], Run]:
    """Return runs by criterion, content, set and split, newest first; runs over part of a set come last.

    `counted`: of the runs whose counts are stored alone.
    """
    contents: dict[int, list[tuple[int, str]]] = {}
    for judge, criterion, content, _ in judged:
        contents.setdefault(judge, []).append((criterion, content))
    rows = Run.objects.filter(
        judge__in=list(contents),
        chat_set__in=ChatSet.objects.listed(),  # not a night's sample: one more every day, with few labels
        state__in=FINISHED,
        purpose__in=MEASURING,
    )
    if counted:
        rows = rows.filter(Exists(Report.objects.filter(kind=Report.Kind.MEASURED, run=OuterRef("pk"))))
    columns = rows.values_list("pk", "judge_id", "chat_set_id", "options")
    ordered = sorted(columns, key=lambda row: (row[3].get("limit") is None, row[0]), reverse=True)
    chosen: dict[tuple[int, str, int, str], int] = {}
    for pk, judge, chat_set, options in ordered:
        for criterion, content in contents[judge]:
            chosen.setdefault((criterion, content, chat_set, options.get("split") or ""), pk)
    found = Run.objects.select_related("judge", "chat_set").in_bulk(set(chosen.values()))
    return {key: found[pk] for key, pk in chosen.items()}


def recipe_of(run: Run, group: int) -> str:
    """Return what a run's judge did besides its prompts, as a text to compare."""
    config = run.judge.config
    groups = config.get("groups", [])
    engine = groups[group]["engine"] if group < len(groups) else run.judge.engine
    return json.dumps([engine, *(config.get(name) for name in RECIPE)], sort_keys=True)


# ---------- counts, cached with the run ----------


def version_counts_store(run: Run) -> None:
    """Count a finished run before a page needs it, and store the counts for all processes."""
    if run.state in FINISHED and run.purpose in MEASURING:
        with documents_stored():
            judged = JudgePrompt.objects.filter(judge=run.judge_id).values("criterion")
            _counts([(run, criterion) for criterion in Criterion.objects.filter(pk__in=judged)])
            run_costs_store(run)


def _counts(pairs: Collection[tuple[Run, Criterion]]) -> dict[tuple[int, int], dict[str, Counts]]:
    """Return by run and criterion id the counts of each split, in order."""
    pins = {(run.pk, criterion.pk): _pin(run, criterion) for run, criterion in pairs}
    cached = known_bodies(set(pins.values()))
    missing = [(run, criterion) for run, criterion in pairs if pins[run.pk, criterion.pk] not in cached]
    if missing:
        cached |= {row.pin: row.body for row in _recount(missing, pins)}
    return {pair: _in_order(cached[pin]) for pair, pin in pins.items()}


def _stored(
    pairs: Collection[tuple[Run, Criterion]],
) -> tuple[dict[tuple[int, int], dict[str, Counts]], set[tuple[int, int]]]:
    """Return the latest cached counts, and the pairs whose answers have changed since; two queries."""
    pins = {(run.pk, criterion.pk): _pin(run, criterion) for run, criterion in pairs}
    current = known_bodies(set(pins.values()))
    subjects = {
        hash_of(_what(run, criterion)): (run.pk, criterion.pk)
        for run, criterion in pairs
        if pins[run.pk, criterion.pk] not in current
    }
    older = Report.objects.filter(subject__in=subjects).order_by("pk").values_list("subject", "body")
    outdated = {subjects[subject]: body for subject, body in older if _has_todays_form(body)}
    bodies = {pair: current[pin] for pair, pin in pins.items() if pin in current} | outdated
    return {pair: _in_order(body) for pair, body in bodies.items()}, set(outdated)


def _has_todays_form(splits: Mapping[str, Any]) -> bool:
    """Return whether stored counts have every part that is read today."""
    parts = {"table", "unjudged", "labelled", "unresolved", "human", "drawn"}
    return all(parts <= body.keys() for body in splits.values())


def _without_holdout(
    pairs: Collection[tuple[Run, Criterion]],
    counts: Mapping[tuple[int, int], dict[str, Counts]],
    outdated: Collection[tuple[int, int]],
) -> tuple[dict[tuple[int, int], dict[str, Counts]], set[tuple[int, int]]]:
    """Drop splits with too few holdout chats, since nothing is counted again; one query.

    NB: outdated counts may compare fewer holdout chats than today's labels, so any holdout chat drops them.
    """
    held = holdout_counts({run.pk for run, _ in pairs}, criteria={criterion.pk for _, criterion in pairs})
    result, few = dict(counts), set()
    for run, criterion in pairs:
        pair = run.pk, criterion.pk
        splits = held.get((run.pk, criterion.key), {})
        dropped = {name for name, n in splits.items() if n < MINIMUM_HOLDOUT_CHATS or pair in outdated}
        if dropped:
            few.add(pair)
            result[pair] = {name: body for name, body in counts.get(pair, {}).items() if name not in dropped}
    return result, few


def _recount(pairs: Collection[tuple[Run, Criterion]], pins: Mapping[tuple[int, int], str]) -> list[Report]:
    """Count, in place of the counts from before an answer changed."""
    rows = {(run.pk, criterion.pk): _row(run, criterion, pins) for run, criterion in pairs}
    older = stored_ids(list(rows.values())) if is_storing() else []
    weighted = weighted_rates(pairs)
    for pair, splits in _counted(pairs).items():
        rows[pair].body = {
            split: body | {"drawn": weighted.get((*pair, split))} for split, body in splits.items()
        }
    keep_documents(list(rows.values()), older=older)
    return list(rows.values())


def _row(run: Run, criterion: Criterion, pins: Mapping[tuple[int, int], str]) -> Report:
    """Return an unsaved row without its body."""
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
    """Return the cache key: it changes with every human answer and with the reports that rates come from."""
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
    """Count splits with too few holdout chats without them; return the counts and which pairs changed."""
    held = holdout_counts({run.pk for run, _ in pairs}, criteria={criterion.pk for _, criterion in pairs})
    few = {
        (run.pk, criterion.pk): {
            split for split, n in held[run.pk, criterion.key].items() if n < MINIMUM_HOLDOUT_CHATS
        }
        for run, criterion in pairs
        if (run.pk, criterion.key) in held
    }
    again = [(run, criterion) for run, criterion in pairs if few.get((run.pk, criterion.pk))]
    if not again:
        return dict(counts), set()
    fresh, result = _counted(again, excluded=Q(chat__in=holdout_chats())), dict(counts)
    for run, criterion in again:
        pair = run.pk, criterion.pk
        result[pair] = {split: body for split, body in counts[pair].items() if split not in few[pair]}
        for split in few[pair] & fresh[pair].keys():
            weighted = WITHHELD if counts[pair][split]["drawn"] else None
            result[pair][split] = fresh[pair][split] | {"drawn": weighted}
        result[pair] = _in_order(result[pair])
    return result, {(run.pk, criterion.pk) for run, criterion in again}


def _counted(
    pairs: Iterable[tuple[Run, Criterion]], *, excluded: Q | None = None
) -> dict[tuple[int, int], dict[str, Counts]]:
    """Count in one query for any number of pairs; verdicts that match `excluded` do not count.

    Labels that were sampled by verdict count unweighted.
    """
    runs_by_criterion: dict[int, list[int]] = {}
    for run, criterion in pairs:
        runs_by_criterion.setdefault(criterion.pk, []).append(run.pk)
    cells: dict[tuple[int, int], dict[str, list[tuple[Any, ...]]]] = {
        (run, criterion): {} for criterion, runs in runs_by_criterion.items() for run in runs
    }
    for run, criterion, split, consensus, value, n in _patterns(runs_by_criterion, excluded):
        if consensus is not None:
            cells[run, criterion].setdefault(split, []).append((consensus, value, n))
    return {pair: {split: _body(rows) for split, rows in splits.items()} for pair, splits in cells.items()}


def _patterns(runs_by_criterion: Mapping[int, list[int]], excluded: Q | None) -> Any:
    """Return rows of run, criterion, split, consensus or None, verdict, and the number of chats.

    NB: pages show many runs with a verdict on most chats, so the consensus is looked up once for each verdict
    as one JSON value, not once for each of its columns.
    """
    chosen = Q()
    for criterion, runs in runs_by_criterion.items():
        chosen |= Q(criterion=criterion, run__in=runs)
    if excluded is not None:
        chosen &= ~excluded
    consensus = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    answers = consensus.values(answers=JSONObject(state="state", true="n_true", false="n_false", na="n_na"))
    rows = Verdict.objects.filter(chosen, run__run_chats__chat=F("chat")).annotate(
        consensus=Subquery(answers)
    )
    kinds = ("run_id", "criterion_id", "run__run_chats__split", "consensus", "value")
    return rows.values_list(*kinds).annotate(n=Count("pk")).order_by()


def _body(rows: Iterable[tuple[Any, ...]]) -> Counts:
    """Return the counts of one run, criterion and split from rows of consensus, verdict, chats."""
    table = {(human, judge): 0 for human in (True, False) for judge in (True, False, None)}
    states: Counter[str] = Counter()
    answers = []
    for consensus, value, n in rows:
        states[consensus["state"]] += n
        answers.append((consensus["true"], consensus["false"], consensus["na"], n))
        if consensus["state"] in Consensus.ANSWERED:
            table[consensus["state"] == Consensus.State.TRUE, value] += n
    counts = np.array(answers, dtype=np.int64)
    pairs = ((True, True), (True, False), (False, True), (False, False))
    return {
        "table": [table[pair] for pair in pairs],
        "unjudged": [table[True, None], table[False, None]],
        "labelled": states.total(),
        "unresolved": states[Consensus.State.UNRESOLVED],
        # Raters are not named in these counts.
        "human": human_side(np.repeat(counts[:, :3], counts[:, 3], axis=0), raters=0, seed=SEED).body,
    }
