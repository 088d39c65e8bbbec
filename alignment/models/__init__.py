"""Tables of alignment reports and regression tests; import from the submodules."""

from alignment.models import regressions as regressions
from alignment.models import reports as reports
