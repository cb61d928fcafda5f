"""What a reader sees: tables, the figures of the paper, and the report page."""
