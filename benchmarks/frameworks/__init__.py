"""What an answer costs inside a framework, next to the same model calls made by the framework itself."""
