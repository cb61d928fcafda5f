"""Output for readers: tables, the figures of the paper, and the report page."""
