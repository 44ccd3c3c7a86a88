"""Plans that requested instants contain: rollbacks, restores, cleans, compactions, clusterings and index builds.

Each module has the dataclass of one plan and its conversion from and to the Avro record of the timeline. Planners are
in the packages of their actions.
"""
