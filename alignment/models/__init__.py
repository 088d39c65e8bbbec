"""Tables of alignment reports, regression tests and suggested prompts; import from the submodules."""

from alignment.models import regressions as regressions
from alignment.models import reports as reports
from alignment.models import suggestions as suggestions
