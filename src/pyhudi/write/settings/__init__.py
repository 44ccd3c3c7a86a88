"""Settings of writes.

Takes options and the configuration of the table, and refuses options that are not supported. Returns the
`WriteContext`, which is sent to the tasks, with the settings of base files, log files and CDC logs.
"""
