"""Tables of alerts, archives, reports, certificates, disagreements and tests; import submodules."""

from alignment.models import alerts as alerts
from alignment.models import archives as archives
from alignment.models import audits as audits
from alignment.models import baselines as baselines
from alignment.models import certificates as certificates
from alignment.models import experiments as experiments
from alignment.models import issues as issues
from alignment.models import misalignments as misalignments
from alignment.models import pins as pins
from alignment.models import regressions as regressions
from alignment.models import reports as reports
from alignment.models import requests as requests
from alignment.models import rubric_drafts as rubric_drafts
from alignment.models import suggestions as suggestions
from alignment.models import topic_prompt as topic_prompt
