"""Making rows: the configuration, the plan, the runner with its engine, the cache of model calls, and the journal."""
