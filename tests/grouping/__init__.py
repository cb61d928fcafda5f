"""Who has a vote: `robustrag_integrations/grouping`."""
