"""What people ask of the judge's side; each function is one request, all or nothing."""
