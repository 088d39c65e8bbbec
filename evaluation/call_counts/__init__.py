"""Model calls by outcome, tokens, cost and lost leases, for what watches the site."""
