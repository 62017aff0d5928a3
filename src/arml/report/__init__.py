"""Records to tables. Reads records only."""
