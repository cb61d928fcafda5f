"""The defences: plans that ask and are told, and the classes that run them against a model."""
