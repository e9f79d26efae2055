"""Charts: Vega-Lite specifications from plain data, and their SVG."""
