"""Plans: the defences and their certificates without input or output, and what drives them."""
