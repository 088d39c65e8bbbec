"""Tables of alignment reports; import from the submodules."""

from alignment.models import reports as reports
