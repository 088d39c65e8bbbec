"""Hashes that tell whether two reports are of the same chats and answers."""

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import asdict

import numpy as np

from alignment.comparison.core.codes import ReportData


def chats_hash(external_ids: Iterable[str]) -> str:
    """
    Which chats they are, in whatever order, as a SHA-256.

    Examples
    --------
    >>> chats_hash(["c1", "c2"]) == chats_hash(["c2", "c1"])
    True
    """
    return hashlib.sha256(json.dumps(sorted(external_ids)).encode()).hexdigest()


def answers_hash(data: ReportData, *, key: bytes) -> str:
    """
    Everything that a report is computed from, as HMAC-SHA-256: chats in order, people's answers, verdicts.

    NB: with a plain hash, whoever knows all but a few answers could try out which ones give it.

    Examples
    --------
    >>> from alignment.comparison.core.codes import CriterionData, CriterionSpec
    >>> spec = CriterionSpec("polite", "compliance", "Compliance", "simple", True)
    >>> people, labels = np.array([0, 1], dtype=np.int8), np.array([[1, 0, 0], [0, 1, 0]])
    >>> def given(*verdicts):
    ...     judge = np.array(verdicts, dtype=np.int8)
    ...     return ReportData(["c1", "c2"], (CriterionData(spec, people, judge, labels, 1),))
    >>> answers_hash(given(0, 1), key=b"k") == answers_hash(given(0, 0), key=b"k")
    False
    """
    start = json.dumps([data.against, list(data.chat_ids)]).encode()
    found = hmac.new(b"alignment report" + key, start, hashlib.sha256)
    for criterion in data.criteria:
        tables = {name: asdict(table) for name, table in criterion.rater_tables.items()}
        found.update(json.dumps([criterion.spec.key, tables], sort_keys=True).encode())
        for codes in (criterion.human, criterion.judge, criterion.counts):
            if codes is not None:
                # NB: one width and byte order, whatever the machine and the column gave.
                found.update(np.ascontiguousarray(codes, dtype="<i4").tobytes())
        if criterion.inverse is not None:
            found.update(np.ascontiguousarray(criterion.inverse, dtype="<f8").tobytes())
    return found.hexdigest()
