"""REST of what needs labels and verdicts: reports, and the judge's view for raters who have submitted."""
