"""A model's reply: its answer, apart from reasoning, refusals and how it ended."""
