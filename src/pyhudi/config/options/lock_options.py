"""Options of the lock of a table, by lock provider."""

from __future__ import annotations

from pyhudi.config.enums import DynamoDbBillingMode
from pyhudi.config.option import choice, integer, optional_integer, optional_text, text

_LOCK = "hoodie.write.lock."

LOCK_PROVIDER = optional_text(
    _LOCK + "provider",
    "Lock provider by Apache Hudi's class name. Default: a lock of the local file system for the writers of one "
    "machine; for several writers (`hoodie.write.concurrency.mode`) with the address of ZooKeeper, the "
    "ZookeeperBasedLockProvider, and otherwise on an object store, the StorageBasedLockProvider.",
)
LOCK_WAIT_TIME_MS = integer(_LOCK + "wait_time_ms", 60_000, "Time limit of one attempt to acquire the lock.")
LOCK_RETRY_WAIT_MS = integer(_LOCK + "wait_time_ms_between_retry", 1000, "Wait between retries within one attempt.")
LOCK_CLIENT_NUM_RETRIES = integer(
    _LOCK + "client.num_retries", 50, "Number of further attempts to acquire the lock after the first one."
)
LOCK_CLIENT_RETRY_WAIT_MS = integer(
    _LOCK + "client.wait_time_ms_between_retry", 5000, "Wait between attempts to acquire the lock."
)
LOCK_FILESYSTEM_PATH = optional_text(_LOCK + "filesystem.path", "Folder of the lock file. Default: .hoodie.")
LOCK_FILESYSTEM_EXPIRE_MIN = integer(
    _LOCK + "filesystem.expire", 0, "Minutes after which a lock file is considered stale; 0: never."
)
LOCK_STORAGE_VALIDITY_SECS = integer(
    _LOCK + "storage.validity.timeout.secs",
    300,
    "Seconds for which a storage-based lock is valid without a renewal, at least ten times those between renewals.",
    minimum=10,
)
LOCK_STORAGE_RENEW_SECS = integer(
    _LOCK + "storage.renew.interval.secs", 30, "Seconds between renewals of a storage-based lock.", minimum=1
)
LOCK_ZOOKEEPER_URL = optional_text(
    _LOCK + "zookeeper.url", "Addresses of the ZooKeeper servers, `host:port,…`, for the ZookeeperBasedLockProvider."
)
LOCK_ZOOKEEPER_PORT = optional_integer(
    _LOCK + "zookeeper.port", "Port of servers whose address has none. Default: 2181.", minimum=1, maximum=65535
)
LOCK_ZOOKEEPER_BASE_PATH = optional_text(
    _LOCK + "zookeeper.base_path", "Path of ZooKeeper below which locks are; the same for all writers of a table."
)
LOCK_ZOOKEEPER_LOCK_KEY = optional_text(
    _LOCK + "zookeeper.lock_key", "Name of the lock below the base path. Default: the name of the table."
)
LOCK_ZOOKEEPER_SESSION_TIMEOUT_MS = integer(
    _LOCK + "zookeeper.session_timeout_ms",
    60_000,
    "Time after which ZooKeeper releases the lock of a process that no longer responds.",
    minimum=1,
)
LOCK_ZOOKEEPER_CONNECTION_TIMEOUT_MS = integer(
    _LOCK + "zookeeper.connection_timeout_ms", 15_000, "Time limit of a connection to ZooKeeper.", minimum=1
)
LOCK_HIVE_METASTORE_URIS = optional_text(
    _LOCK + "hivemetastore.uris",
    "Addresses of the Hive metastore for the HiveMetastoreBasedLockProvider, `thrift://host:port,…`. Default: "
    "`hive.metastore.uris` of hive-site.xml.",
)
LOCK_HIVE_METASTORE_DATABASE = optional_text(
    _LOCK + "hivemetastore.database", "Database of the lock in the Hive metastore; the same for all writers of a table."
)
LOCK_HIVE_METASTORE_TABLE = optional_text(
    _LOCK + "hivemetastore.table",
    "Table of the lock in the Hive metastore; the same for all writers of a table. It need not exist.",
)
LOCK_HEARTBEAT_INTERVAL_MS = integer(
    _LOCK + "heartbeat_interval_ms",
    60_000,
    "Interval of the heartbeats of a lock in the Hive metastore. For storage-based locks, "
    "`hoodie.write.lock.storage.renew.interval.secs` applies.",
    minimum=1,
)
LOCK_DYNAMODB_TABLE = text(
    _LOCK + "dynamodb.table",
    "hudi_locks",
    "Table of locks in DynamoDB, for the DynamoDBBasedLockProvider. It is created if it does not exist.",
)
LOCK_DYNAMODB_PARTITION_KEY = optional_text(
    _LOCK + "dynamodb.partition_key",
    "Name of the lock in the table of locks; the same for all writers of a table. Default: the name of the table.",
)
LOCK_DYNAMODB_REGION = optional_text(
    _LOCK + "dynamodb.region",
    "Region of the table of locks. Default: the environment variable AWS_REGION, or us-east-1.",
)
LOCK_DYNAMODB_ENDPOINT_URL = optional_text(
    _LOCK + "dynamodb.endpoint_url", "Address of DynamoDB. Default: that of the region."
)
LOCK_DYNAMODB_BILLING_MODE = choice(
    _LOCK + "dynamodb.billing_mode",
    DynamoDbBillingMode.PAY_PER_REQUEST,
    "Billing mode of a table of locks that is created.",
)
LOCK_DYNAMODB_READ_CAPACITY = integer(
    _LOCK + "dynamodb.read_capacity", 20, "Read capacity of a table of locks that is PROVISIONED.", minimum=1
)
LOCK_DYNAMODB_WRITE_CAPACITY = integer(
    _LOCK + "dynamodb.write_capacity", 10, "Write capacity of a table of locks that is PROVISIONED.", minimum=1
)
LOCK_DYNAMODB_TABLE_CREATION_TIMEOUT = integer(
    _LOCK + "dynamodb.table_creation_timeout",
    120_000,
    "Milliseconds to wait until a new table of locks can be used.",
    minimum=1,
)
