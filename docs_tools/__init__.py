"""Tools that make parts of the docs: the site, the reference, `llms.txt` and the screenshots."""
