"""The report of a run: one document, a page and charts made from it, and their files."""
