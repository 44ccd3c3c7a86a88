"""Lock providers. Takes options and gives the table's lock: of this process, of this host, a lock file or a lease in
storage.
"""
