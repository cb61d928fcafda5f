"""The documentation site: `python -m docs.site` stages the pages, builds them and checks every link."""
