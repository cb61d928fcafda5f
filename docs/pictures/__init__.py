"""Pictures of real runs: `python -m docs.pictures` draws what was recorded, `--record` runs it all again first."""
