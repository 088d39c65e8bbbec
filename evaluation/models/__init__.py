"""Tables of prompts, knowledge, judges, runs and webhooks; import from the submodules."""

from evaluation.models import call_counts as call_counts
from evaluation.models import day_counts as day_counts
from evaluation.models import endpoints as endpoints
from evaluation.models import judges as judges
from evaluation.models import nightly as nightly
from evaluation.models import outbox as outbox
from evaluation.models import prompts as prompts
from evaluation.models import runs as runs
