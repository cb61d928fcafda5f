"""Long answers and lists, counted claim by claim: for keyword aggregation and consensus alike."""
