"""Transformers models that run in this process."""
