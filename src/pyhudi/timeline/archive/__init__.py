"""The archived timeline.

Moves completed instants into archive log files (layout 1) or the LSM timeline (layout 2), and reads both as Arrow.
"""
