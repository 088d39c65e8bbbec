"""What one process remembers for a moment; the default cache is the database's, shared by all processes."""

from typing import Any

from django.core.cache import caches
from django.utils.connection import ConnectionProxy

memory: Any = ConnectionProxy(caches, "process")
