"""Files on disk -> records -> comparisons -> numbers over seeds. Nothing here knows tables or charts."""
