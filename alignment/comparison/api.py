"""Query parameters that select what a comparison covers, shared by the routes of several features."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

REPORT_PARAMETERS = [
    OpenApiParameter("split", OpenApiTypes.STR, enum=["train", "dev", "holdout"]),
    OpenApiParameter("against", OpenApiTypes.STR, description="consensus, each-rater or rater:NAME"),
    OpenApiParameter("topic", OpenApiTypes.STR, description="key of a topic"),
    OpenApiParameter("since", OpenApiTypes.DATE, description="first day on which chats started"),
    OpenApiParameter("until", OpenApiTypes.DATE, description="last day on which chats started"),
]
