"""Tables of reports, certificates, misalignments, tests and suggestions; import from the submodules."""

from alignment.models import certificates as certificates
from alignment.models import misalignments as misalignments
from alignment.models import regressions as regressions
from alignment.models import reports as reports
from alignment.models import suggestions as suggestions
