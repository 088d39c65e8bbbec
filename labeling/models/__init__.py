"""Tables of chats, rubric, accounts and labels; import from the submodules, not from here."""

from labeling.models import chats as chats
from labeling.models import imports as imports
from labeling.models import ingest as ingest
from labeling.models import labels as labels
from labeling.models import people as people
from labeling.models import rubric as rubric
from labeling.models import sampling as sampling
