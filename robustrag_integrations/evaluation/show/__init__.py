"""What a reader sees: tables, the figures of the paper, plots, and the report page."""
