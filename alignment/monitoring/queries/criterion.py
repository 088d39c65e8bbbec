"""One criterion in production: its line, its topics and variants, and the failing chats behind a point."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet, Sum

from alignment.comparison.queries.rationales import short_rationale
from alignment.monitoring.core.audits import (
    JudgedStratum,
    PartAudit,
    of_topic,
    of_variant,
    part_rates,
    zeroed,
)
from alignment.monitoring.core.corrected_rates import ProductionRates
from alignment.monitoring.core.series import (
    Cell,
    FrameSizes,
    JudgeName,
    Mark,
    Point,
    Series,
    TopicPart,
    chosen_cells,
    series,
)
from alignment.monitoring.core.weighted_rates import Reason, weighted_rates
from alignment.monitoring.queries.audits import audits_of, criterion_part
from alignment.monitoring.queries.curated import curated_labels
from alignment.monitoring.queries.judged import (
    Judges,
    Window,
    counts_in,
    criterion_cells,
    frame_sizes,
    runs_of,
    verdicts_of_days,
    version_marks,
)
from alignment.monitoring.queries.overview import NamedLine
from alignment.statistics.agreement import Confusion
from common.citations import citations
from evaluation.models.day_counts import DayCount
from evaluation.models.runs import Verdict
from evaluation.runs.queries.steps import final_rationales
from labeling.models.chats import Topic
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.people.queries.visibility import chats_hidden

UNSET = "no variant"


@dataclass(frozen=True, slots=True)
class VariantRate:
    """The rates of an experiment's variant over the whole window."""

    experiment: str
    variant: str
    judged: int
    rates: ProductionRates


@dataclass(frozen=True, slots=True)
class TopicRate:
    """A topic at one point: its rates, and the judged chats that fail."""

    topic: Topic
    judged: int
    failed: int
    rates: ProductionRates


@dataclass(frozen=True)
class CriterionProduction:
    """A criterion in a window. `point` is the chosen one, the newest by default; None without any."""

    window: Window
    criterion: Criterion
    series: Series
    topics: Sequence[NamedLine]
    variants: Sequence[VariantRate]
    point: Point | None
    at_point: Sequence[TopicRate]
    runs: frozenset[int]
    passes_when: bool = True


def criterion_production(
    window: Window, row: Criterion, *, user: User | AnonymousUser, point: date | None = None
) -> CriterionProduction:
    """Return a criterion's page; the number of queries does not depend on verdicts, topics or days."""
    marks = version_marks(window)
    cells = criterion_cells(counts_in(window, criterion=row))
    sizes = frame_sizes(window, runs_of(cells))
    judges = Judges.of(runs_of(cells), [row.pk])
    names = judges.names(row.pk)
    chosen = chosen_cells(cells.get(row.pk, []), names)
    tables = curated_labels(judges, [row.pk], user=user)
    audit = audits_of(judges.rows, [criterion_part(row.pk)], user=user).of_criterion(row.pk)
    frame = _Frame(chosen, names, sizes, tables.get(row.pk, {}), audit)
    whole = series(
        chosen,
        judges=names,
        sizes=sizes,
        step=window.step,
        versions=marks,
        curated=tables.get(row.pk, {}),
        audit=frame.audit,
    )
    at = next((one for one in whole.points if one.first == point), whole.latest)
    behind = [
        cell
        for cell in chosen
        if at and at.first <= cell.day <= at.last and names[cell.run].identity == at.judge.identity
    ]
    topics = Topic.objects.in_bulk({cell.topic for cell in chosen})
    return CriterionProduction(
        window=window,
        criterion=row,
        series=whole,
        topics=_topic_lines(frame, topics, window=window, marks=marks),
        variants=_variants(window, row, frame),
        point=at,
        at_point=_topics_at(replace(frame, cells=behind), topics),
        runs=frozenset(cell.run for cell in behind),
        passes_when=_passes_when(row, judges, at),
    )


def _passes_when(row: Criterion, judges: Judges, at: Point | None) -> bool:
    """The passing answer, as the point's judge was asked."""
    prompt = judges.prompts.get((at.judge.judge, row.pk)) if at else None
    if prompt is not None:
        return prompt.criterion_version.passes_when
    newest = CriterionVersion.objects.filter(criterion=row).order_by("-number").first()
    return newest is None or newest.passes_when


@dataclass(frozen=True)
class _Frame:
    """What the rates of a criterion are estimated from; `cells` are the chosen ones."""

    cells: Sequence[Cell]
    names: Mapping[int, JudgeName]
    sizes: FrameSizes
    tables: Mapping[int, Confusion]
    audit: PartAudit

    @property
    def curated(self) -> Confusion | Reason | None:
        """The curated labels of the judge; a reason if several judges judged these cells."""
        judges = {self.names[cell.run].judge for cell in self.cells}
        if len({self.names[cell.run].identity for cell in self.cells}) > 1:
            return Reason.SEVERAL_JUDGES
        return next((self.tables[one] for one in sorted(judges) if one in self.tables), None)

    @cached_property
    def whole(self) -> list[JudgedStratum]:
        """The judged strata of all cells."""
        return self.strata(self.cells)

    def strata(self, cells: Sequence[Cell]) -> list[JudgedStratum]:
        """The judged strata of these cells."""
        return [JudgedStratum(cell.run, cell.day, cell.topic, self.sizes.stratum(cell)) for cell in cells]

    def by_topic(self) -> dict[int, list[Cell]]:
        """The cells of each topic."""
        found: dict[int, list[Cell]] = defaultdict(list)
        for cell in self.cells:
            found[cell.topic].append(cell)
        return found


def _topic_lines(
    frame: _Frame, topics: dict[int, Topic], *, window: Window, marks: Sequence[Mark]
) -> list[NamedLine]:
    """The line of each topic, the largest first."""
    lines = []
    by_topic = frame.by_topic().items()
    for pk, some in sorted(by_topic, key=lambda item: -sum(cell.sampled for cell in item[1])):
        found = series(
            some,
            judges=frame.names,
            sizes=frame.sizes,
            step=window.step,
            versions=marks,
            curated=frame.tables,
            audit=frame.audit,
            topic=TopicPart(pk, frame.whole),
        )
        lines.append(NamedLine(topics[pk].key, topics[pk].name, found))
    return lines


def _topics_at(frame: _Frame, topics: dict[int, Topic]) -> list[TopicRate]:
    by_topic = frame.by_topic()
    judged = weighted_rates([[one.sums for one in frame.strata(some)] for some in by_topic.values()])
    rows = [
        TopicRate(
            topics[pk],
            sum(cell.sampled for cell in some),
            int(sum(cell.answers - cell.passes for cell in some)),
            part_rates(
                rate,
                zeroed(frame.whole, topic=pk),
                curated=frame.curated,
                audit=frame.audit,
                inside=of_topic(pk),
                shared=True,
            ),
        )
        for (pk, some), rate in zip(by_topic.items(), judged, strict=True)
    ]
    return sorted(rows, key=lambda one: (-one.failed, one.topic.name))


def _variants(window: Window, row: Criterion, frame: _Frame) -> list[VariantRate]:
    """Rates of variants: chats of the others count in the strata, with no answer."""
    counts: QuerySet[DayCount] = counts_in(window, criterion=row).exclude(experiment="").order_by()
    place = ("experiment", "variant", "day", "topic", "run")
    sums = counts.values(*place).annotate(n=Sum("chats"), good=Sum("passed"), bad=Sum("failed"))
    found: dict[tuple[str, str], dict[Any, tuple[int, int, int]]] = defaultdict(dict)
    for experiment, variant, *key, n, good, bad in sums.values_list(*place, "n", "good", "bad"):
        found[experiment, variant][tuple(key)] = (n, good, bad)
    rows = []
    for (experiment, variant), own in sorted(found.items()):
        parts = [(cell, *own.get((cell.day, cell.topic, cell.run), (0, 0, 0))) for cell in frame.cells]
        if not (judged := sum(n for _, n, _, _ in parts)):
            continue
        strata = frame.strata(
            [
                Cell.of_counts(cell.day, cell.topic, cell.run, cell.sampled, good, bad)
                for cell, _, good, bad in parts
            ]
        )
        rates = part_rates(
            weighted_rates([[one.sums for one in strata]])[0],
            strata,
            curated=frame.curated,
            audit=frame.audit,
            inside=of_variant(experiment, variant),
            shared=True,
        )
        rows.append(VariantRate(experiment, variant or UNSET, judged, rates))
    return rows


# ---------- the chats behind a point


@dataclass(frozen=True, slots=True)
class FailingChat:
    """A verdict that fails, its rationale, and the message that the rationale quotes first; 0 without."""

    verdict: Verdict
    words: str
    message: int

    @property
    def anchor(self) -> str:
        """The message's place in the page of the chat."""
        return f"#m{self.message}" if self.message else ""


def failing_verdicts(
    found: CriterionProduction, *, topic: str = "", user: User | AnonymousUser
) -> QuerySet[Verdict]:
    """Return the failing verdicts behind the chosen point on chats that the user may read, newest first."""
    if found.point is None:
        return Verdict.objects.none()
    rows = Verdict.objects.filter(
        verdicts_of_days(found.point.first, found.point.last, runs=found.runs),
        criterion=found.criterion,
        state=Verdict.State.READ,
        value=not found.passes_when,
    )
    if topic:
        rows = rows.filter(chat__topic__key=topic)
    for hidden in chats_hidden(user=user):
        rows = rows.exclude(chat__in=hidden)
    return rows.select_related("chat__topic").order_by("-chat__started_at", "-pk")


def failing_chats(verdicts: Sequence[Verdict]) -> list[FailingChat]:
    """Return these verdicts with their rationales; a constant number of queries."""
    final = final_rationales(verdicts)
    chats = []
    for row in verdicts:
        rationale = row.rationale or final.get(row.pk, "")
        numbers = {message["n"] for message in row.chat.messages}
        quoted = (
            number
            for text in (row.explanation, rationale)  # a rationale may be on other criteria, too
            for citation in citations(text)
            for quote in citation.quotes
            for number in quote.messages
        )
        message = next((number for number in quoted if number in numbers), 0)
        chats.append(FailingChat(row, short_rationale(row.explanation or rationale), message))
    return chats
