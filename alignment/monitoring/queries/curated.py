"""The judge against human labels on curated chats, to correct its rates in production."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, F, Max, OuterRef, Q, Subquery

from alignment.monitoring.queries.judged import Judges
from alignment.statistics.agreement import Confusion
from evaluation.models.runs import EVALUATIONS, FINISHED, Run, Verdict
from labeling.models.chats import ChatSet, Split
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import CriterionVersion
from labeling.people.queries.visibility import holdout_chats, reads_holdout

# Few-shot examples are copied from train chats: the judge has seen those answers.
UNSEEN = (Split.DEV, Split.HOLDOUT)
KINDS = (ChatSet.Kind.CURATED, ChatSet.Kind.GOLD)


def curated_labels(
    judges: Judges, criteria: Collection[int], *, user: User | AnonymousUser
) -> dict[int, dict[int, Confusion]]:
    """Return labels against verdicts by criterion and judge id, with the passing answer as True.

    From each judge's newest finished run over a curated set: dev and holdout chats. Users who may not read
    holdout chats get the counts without them. Three queries.
    """
    runs = _newest_runs({run.judge_id for run in judges.rows.values()})
    newest = {
        row.criterion_id: row
        for row in CriterionVersion.objects.filter(criterion__in=criteria).order_by("number")
    }
    tables: dict[int, dict[int, Confusion]] = defaultdict(dict)
    cells: dict[tuple[int, int], dict[tuple[bool, bool], int]] = defaultdict(dict)
    for run, criterion, human, value, chats in _counts(runs, criteria, user=user):
        cells[criterion, runs[run]][human == Consensus.State.TRUE, value] = chats
    for (criterion, judge), counts in cells.items():
        prompt = judges.prompts.get((judge, criterion))
        if prompt is not None and not prompt.criterion_version.asks_as(newest[criterion]):
            continue  # raters answer another question by now
        asked = prompt.criterion_version if prompt is not None else newest[criterion]
        tables[criterion][judge] = _confusion(counts, passing=asked.passes_when)
    return tables


def _newest_runs(judges: Collection[int]) -> dict[int, int]:
    """Return the judge by run: the newest finished run of each over a curated set."""
    runs = Run.objects.filter(
        judge__in=judges, state__in=FINISHED, purpose__in=EVALUATIONS, chat_set__kind__in=KINDS
    )
    newest = runs.order_by().values("judge").annotate(run=Max("pk"))
    return {run: judge for judge, run in newest.values_list("judge", "run")}


def _counts(
    runs: Collection[int], criteria: Collection[int], *, user: User | AnonymousUser
) -> list[tuple[int, int, str, bool, int]]:
    """Return run, criterion, consensus, verdict and the number of chats with them."""
    same = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    rows = Verdict.objects.filter(
        Q(run__run_chats__split__in=UNSEEN, run__run_chats__chat=F("chat")),
        run__in=list(runs),
        criterion__in=criteria,
        state=Verdict.State.READ,
        value__isnull=False,
    )
    if not reads_holdout(user=user):
        rows = rows.exclude(chat__in=holdout_chats())
    # NB: filtered below, as a filter here would look each consensus up once more.
    rows = rows.annotate(human=Subquery(same.values("state")[:1]))
    counted = rows.order_by().values("run", "criterion", "human", "value").annotate(n=Count("pk"))
    found = counted.values_list("run", "criterion", "human", "value", "n")
    return [
        (run, criterion, human, bool(value), n)
        for run, criterion, human, value, n in found
        if human in Consensus.ANSWERED
    ]


def _confusion(counts: Mapping[tuple[bool, bool], int], *, passing: bool) -> Confusion:
    def of(human_passes: bool, judge_passes: bool) -> int:
        return counts.get((human_passes == passing, judge_passes == passing), 0)

    return Confusion(tp=of(True, True), fn=of(True, False), fp=of(False, True), tn=of(False, False))
