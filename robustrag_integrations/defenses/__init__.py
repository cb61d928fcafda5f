"""The defences: one room per method, and the registry that lists them."""
