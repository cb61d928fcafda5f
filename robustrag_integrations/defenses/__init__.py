"""The defences: a package per method, what they share, and the registry."""
