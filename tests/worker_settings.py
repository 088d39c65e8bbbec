"""The workbench's settings with the embedded broker in a folder of a test's own (LACE_TEST_BROKER)."""

import os
from pathlib import Path

from lace_site.settings import *  # noqa: F403
from lace_site.settings import CELERY_BROKER_URL

if CELERY_BROKER_URL.startswith("filesystem://"):
    BROKER_DIR = Path(os.environ["LACE_TEST_BROKER"])
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(BROKER_DIR / "queue"),
        "data_folder_out": str(BROKER_DIR / "queue"),
        "processed_folder": str(BROKER_DIR / "processed"),
        "control_folder": str(BROKER_DIR / "control"),
        "polling_interval": 0.05,
    }
