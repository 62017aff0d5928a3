"""Records to tables, figures, a verdict in words and a page. Reads records only."""
