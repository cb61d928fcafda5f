"""What ten million questions a day ask for: computed from the methods' own plans, and simulated where they queue."""
