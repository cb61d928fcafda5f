"""Everything that makes the bundled reader: its language, tokenizer, training, evaluation and demo corpus."""
