"""Language models: the interface that the defences use, and its providers."""
