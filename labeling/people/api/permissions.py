"""Permissions of the API's routes: without one, the route answers 404."""

from common.api import Permitted


class LabelsChats(Permitted):
    """Routes of raters."""

    permission = "labeling.label_chats"


class WritesTexts(Permitted):
    """Routes of authors and leads, who write what raters and judges read."""

    permission = "labeling.edit_prompts"


class ManagesLabeling(Permitted):
    """Routes of leads on the labelling side."""

    permission = "labeling.manage_labeling"


class SeesJudge(Permitted):
    """Routes that show runs, verdicts and reports."""

    permission = "labeling.see_judge"


class StartsRuns(Permitted):
    """Routes that cost money."""

    permission = "labeling.start_runs"


class Releases(Permitted):
    """Routes that decide on releases: releasing versions, policies, certificates."""

    permission = "labeling.release_prompts"
