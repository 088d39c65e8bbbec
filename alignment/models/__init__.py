"""Tables of what is measured, certified, triaged, tested and suggested; import from the submodules."""

from alignment.models import baselines as baselines
from alignment.models import certificates as certificates
from alignment.models import misalignments as misalignments
from alignment.models import regressions as regressions
from alignment.models import reports as reports
from alignment.models import suggestions as suggestions
