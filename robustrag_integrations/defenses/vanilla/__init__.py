"""Vanilla RAG: one prompt with all passages. No defence, but a baseline on the same models and prompts."""
