"""What people ask of the labelling side; each function is one request, all or nothing."""
