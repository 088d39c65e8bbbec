"""Tables of reports, certificates, regression tests and suggested prompts; import from the submodules."""

from alignment.models import certificates as certificates
from alignment.models import regressions as regressions
from alignment.models import reports as reports
from alignment.models import suggestions as suggestions
