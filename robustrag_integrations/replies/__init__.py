"""What a model's reply is: its answer, apart from reasoning, refusals and how it ended."""
