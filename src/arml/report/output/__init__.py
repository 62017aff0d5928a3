"""Sheets and charts -> terminal, Markdown, LaTeX, PNG, SVG and one HTML page."""
