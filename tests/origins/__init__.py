"""Origins: `robustrag_integrations/origins`, and groups by them."""
