"""Plans: the defences and their certificates without input or output, and the drivers that run them."""
