"""Settings chosen on data: half of the questions choose, the other half says what the choice is worth."""
