"""Output for readers: tables and the report page."""
