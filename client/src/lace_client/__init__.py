"""Client of the LACE workbench: send chats, start runs, read reports, gate prompts."""

from lace_client.errors import (
    InvalidRequest,
    NotAllowed,
    NotFinished,
    Unreachable,
    WorkbenchError,
)
from lace_client.http import AuthenticatedClient, Client
from lace_client.reports import CriterionAgreement, Estimate, Report
from lace_client.workbench import PromptTest, SentChats, Workbench

__version__ = "1.0.0"
__all__ = [
    "AuthenticatedClient",
    "Client",
    "CriterionAgreement",
    "Estimate",
    "InvalidRequest",
    "NotAllowed",
    "NotFinished",
    "PromptTest",
    "Report",
    "SentChats",
    "Unreachable",
    "Workbench",
    "WorkbenchError",
]
