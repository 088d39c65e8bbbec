"""Labels sampled by verdict."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.utils import timezone

from alignment.comparison.core.codes import CriterionData, ReportData
from alignment.comparison.queries.scope import Scope
from alignment.reports.core import build_report
from alignment.reports.core.status import StatusPolicy
from alignment.reports.queries.reports import alignment_report
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import ChatSet
from labeling.models.labels import Label
from labeling.models.people import Rater
from tests.factories.compared_runs import HUMAN, Compared
from tests.factories.report_data import criterion


def sampled(human: Sequence[int], judge: Sequence[int], inverse: Sequence[float]) -> CriterionData:
    found = criterion(human, judge)
    return CriterionData(
        found.spec, found.human, found.judge, found.counts, 1, inverse=np.array(inverse, dtype=np.float64)
    )


def entry(data: CriterionData) -> dict[str, Any]:
    report = ReportData([f"chat-{n}" for n in range(len(data.human))], (data,))
    found: dict[str, Any] = build_report(report, policy=StatusPolicy(), seed=1)["criteria"][0]
    return found


def answer(chat_set: ChatSet, compared: Compared) -> None:
    """Anna answers each chat of the set as people would."""
    polite = next(row for row in compared.criteria if row.key == "polite")
    chats = [member.chat for member in chat_set.members.select_related("chat")]
    Label.objects.bulk_create(
        Label(
            chat=chat,
            criterion=polite,
            rater=Rater.objects.get(name="anna"),
            version=polite.versions.get(),
            value=HUMAN["polite"](int(chat.external_id.removeprefix("chat-"))),
            state=Label.State.SUBMITTED,
            source=Label.Source.IMPORT,
            given_at=timezone.now(),
        )
        for chat in chats
    )
    consensus_refresh(criterion_ids=[polite.pk], chat_ids=[chat.pk for chat in chats])


def polite_of(compared: Compared, split: str = "") -> dict[str, Any]:
    report = alignment_report(Scope(compared.chat_set, compared.run, split))
    found: dict[str, Any] = next(row for row in report["criteria"] if row["key"] == "polite")
    return found
