"""Change data queries: what each commit of a range has inserted, updated and deleted. Takes a table and a range, gives
a plan (`change_plan`) and, task by task, rows ``op``, ``ts_ms``, ``before``, ``after`` (`change_reader`)."""
