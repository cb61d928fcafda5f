"""The defences: a package per method, which declares its settings; what they share; and the registry."""

from importlib import import_module

for _name in ("keyword", "decoding", "voting", "consensus", "vanilla"):  # in this order they are listed
    import_module(f"{__name__}.{_name}")
