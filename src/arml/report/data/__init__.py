"""Files on disk -> records -> comparisons -> numbers over seeds. Nothing here knows how a number is shown."""
