"""What the methods that count keywords share: reading responses, tallies, and who supports an answer."""
