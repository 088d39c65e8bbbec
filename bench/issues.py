"""How long a week of 20,000 failing chats takes to cluster, and how much memory.

.venv/bin/python -m bench.issues [TEXTS]
"""

import resource
import sys
import time

from alignment.issues.core.clusters import FailingText, Place, closest, clusters_of
from tests.factories.issue_texts import PROBLEMS, planted

LIMIT_SECONDS = 60.0
GROUPS = 14


def main(count: int = 20_000) -> int:
    """Cluster generated rationales of one criterion, then of fourteen; exit 1 above the limit."""
    noise = count // 4
    rows = planted(dict.fromkeys(PROBLEMS, (count - noise) // len(PROBLEMS)), noise=noise, seed=1)
    slowest = 0.0
    for groups in (1, GROUPS):
        texts = [FailingText(row.topic, row.text, number % groups) for number, row in enumerate(rows)]
        start = time.perf_counter()
        found = clusters_of(texts, key=b"bench")
        taken = {member for one in found for member in one.members}
        alone = [number for number in range(len(texts)) if number not in taken]
        closest(texts, alone, {0: Place(0, found[0].centroid)}, key=b"bench")
        seconds = time.perf_counter() - start
        slowest = max(slowest, seconds)
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(
            f"{len(texts):,} texts, {groups} criteria: {seconds:.1f} s, {len(found)} clusters, "
            f"{len(taken):,} texts in them, {megabytes:.0f} MB at most\n"
        )
    return int(slowest > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
