"""Who makes the rows: this process, or a Ray cluster. All engines make the same rows."""
