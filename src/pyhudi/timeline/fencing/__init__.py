"""Fencing: small files beside the timeline that keep late tasks, attempts and requests from adding to an ended write.

Takes the storage and an instant. Writers create these files, and check them before and after each step that another
process could have undone in the meantime.
"""
