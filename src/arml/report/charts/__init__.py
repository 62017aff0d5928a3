"""Numbers -> charts: panels, series and captions, without any drawing library."""
