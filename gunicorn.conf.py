"""What every gunicorn that starts in this folder reads; options of its command line go before these."""

import os
from pathlib import Path

from lace_site.settings import METRICS_DIR

logger_class = "lace_site.watch.web.SiteLogger"
# Before the application is loaded: each web process then writes its metrics where all of them are read.
folder = Path(os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(METRICS_DIR)))
folder.mkdir(parents=True, exist_ok=True)
