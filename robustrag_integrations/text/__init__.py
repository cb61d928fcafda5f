"""What a reply says: its answer without wrapping and reasoning, whether it abstains, its language and keywords."""
