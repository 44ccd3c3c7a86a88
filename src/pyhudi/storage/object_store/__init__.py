"""Object stores as storage, by the package obstore.

Takes the URI and settings of a store and returns its backend, with streams that read ranges and upload parts.
"""
