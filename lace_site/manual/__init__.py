"""The documentation below `docs/` as pages of the workbench: index, pages, search and `llms.txt`."""
