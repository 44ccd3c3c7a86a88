"""Lock providers.

Takes options and returns the lock of the table: of this process, of this host, a lock file, a lease in storage, or a
lock of ZooKeeper, DynamoDB or a Hive metastore.
"""
