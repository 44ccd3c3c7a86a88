"""Lock providers.

Takes options and returns the lock of the table: of this process, of this host, a lock file or a lease in storage.
"""
