"""The archived timeline. Takes completed instants and moves them into archive log files (layout 1) or the LSM
timeline (layout 2); reads both as Arrow.
"""
