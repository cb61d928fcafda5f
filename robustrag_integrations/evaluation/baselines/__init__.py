"""Defences of other papers, to compare with: each re-reads raw passages in the end, so none has a radius."""
