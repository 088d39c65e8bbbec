"""Permissions of the API's routes: without one, the route answers 404."""

from common.api import RequiredPermission


class LabelsChats(RequiredPermission):
    """Routes of raters."""

    permission = "labeling.label_chats"


class WritesTexts(RequiredPermission):
    """Routes of authors and leads, who write what raters and judges read."""

    permission = "labeling.edit_prompts"


class ManagesLabeling(RequiredPermission):
    """Routes of leads on the labelling side."""

    permission = "labeling.manage_labeling"


class SeesJudge(RequiredPermission):
    """Routes that show runs, verdicts and reports."""

    permission = "labeling.see_judge"


class StartsRuns(RequiredPermission):
    """Routes that cost money."""

    permission = "labeling.start_runs"


class Releases(RequiredPermission):
    """Routes that decide on releases: releasing versions, policies, certificates."""

    permission = "labeling.release_prompts"
