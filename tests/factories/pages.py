"""Pages as tests read them."""

import re
from typing import Any


def page_text(response: Any) -> str:
    """Return a page's HTML without the line breaks and indentation of its template."""
    html = " ".join(response.content.decode().split())
    html = re.sub(r"(<[a-z][^>]*>) ", r"\1", html).replace(" </", "</")
    return re.sub(r"> <(td|th|tr|small)\b", r"><\1", html)
