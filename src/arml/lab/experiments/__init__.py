"""Which runs make a table or a figure: one file a setting."""
