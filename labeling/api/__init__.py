"""REST of the labelling side: one module for each kind of user or thing."""
