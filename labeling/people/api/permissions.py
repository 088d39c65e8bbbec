"""Permission classes of the API: one for each group of routes that raters, authors and leads share."""

from common.api import Permitted


class LabelsChats(Permitted):
    """Routes for raters."""

    permission = "labeling.label_chats"


class WritesTexts(Permitted):
    """Routes for authors and leads: the texts that raters and the judge read."""

    permission = "labeling.edit_prompts"


class ManagesLabeling(Permitted):
    """Routes for leads: labelling and the workspace."""

    permission = "labeling.manage_labeling"
