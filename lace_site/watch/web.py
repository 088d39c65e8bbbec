"""gunicorn's logger: its lines go where all others go."""

from logging.config import dictConfig
from typing import Any

from gunicorn.glogging import Logger

from lace_site.settings import LOGGING


class SiteLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Logs like every process of the site. Requests are logged by the middleware, by route."""

    def setup(self, cfg: Any) -> None:
        """Use the configuration of the settings instead of gunicorn's handlers."""
        self.cfg = cfg
        self._access_log_enabled = False
        self.loglevel = self.LOG_LEVELS.get(cfg.loglevel.lower(), self.LOG_LEVELS["warning"])
        self.error_log.setLevel(self.loglevel)
        self.error_log.propagate = True
        dictConfig(LOGGING)
