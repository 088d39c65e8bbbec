"""Hashes of a report's chats and answers, to compare two reports."""

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import asdict

import numpy as np

from alignment.comparison.core.codes import ReportData


def chats_hash(external_ids: Iterable[str]) -> str:
    """SHA-256 of a set of chats, in any order.

    Examples
    --------
    >>> chats_hash(["c1", "c2"]) == chats_hash(["c2", "c1"])
    True
    """
    return hashlib.sha256(json.dumps(sorted(external_ids)).encode()).hexdigest()


def answers_hash(data: ReportData, *, key: bytes) -> str:
    """HMAC-SHA-256 of a report's input: chats in order, human answers, verdicts.

    NB: a plain hash would let a reader who knows all but a few answers find those by trying.

    Examples
    --------
    >>> from alignment.comparison.core.codes import CriterionData, CriterionSpec
    >>> spec = CriterionSpec("polite", "compliance", "Compliance", "simple", True)
    >>> human, labels = np.array([0, 1], dtype=np.int8), np.array([[1, 0, 0], [0, 1, 0]])
    >>> def data(*verdicts):
    ...     judge = np.array(verdicts, dtype=np.int8)
    ...     return ReportData(["c1", "c2"], (CriterionData(spec, human, judge, labels, 1),))
    >>> answers_hash(data(0, 1), key=b"k") == answers_hash(data(0, 0), key=b"k")
    False
    """
    start = json.dumps([data.against, list(data.chat_ids)]).encode()
    digest = hmac.new(b"alignment report" + key, start, hashlib.sha256)
    if data.clusters is not None:
        digest.update(np.ascontiguousarray(data.clusters, dtype="<i4").tobytes())
    for criterion in data.criteria:
        tables = {name: asdict(table) for name, table in criterion.rater_tables.items()}
        digest.update(json.dumps([criterion.spec.key, tables], sort_keys=True).encode())
        for codes in (criterion.human, criterion.judge, criterion.counts):
            if codes is not None:
                # NB: one width and byte order on every machine and for every column type.
                digest.update(np.ascontiguousarray(codes, dtype="<i4").tobytes())
        if criterion.inverse is not None:
            digest.update(np.ascontiguousarray(criterion.inverse, dtype="<f8").tobytes())
    return digest.hexdigest()
