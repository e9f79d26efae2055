"""Charts: Vega-Lite specifications made from plain data, and their SVG."""
