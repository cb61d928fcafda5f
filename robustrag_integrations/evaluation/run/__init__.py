"""Making rows: the configuration, the plan, the runner with its engines, the cache of model calls, and the journal."""
