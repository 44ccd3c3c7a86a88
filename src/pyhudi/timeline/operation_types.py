"""Operation types in commit metadata (Apache Hudi's ``WriteOperationType``)."""

from __future__ import annotations

CLUSTER = "CLUSTER"
COMPACT = "COMPACT"
LOG_COMPACT = "LOG_COMPACT"
INDEX = "INDEX"
ALTER_SCHEMA = "ALTER_SCHEMA"
BUCKET_RESCALE = "BUCKET_RESCALE"
BULK_INSERT_PREPPED = "BULK_INSERT_PREPPED"
"""Operation of the delta commits of a metadata table that build a partition."""

DELETES = frozenset({"DELETE", "DELETE_PREPPED"})
"""Operations that delete records by their keys."""
OVERWRITES = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION", BUCKET_RESCALE})
"""Operations that replace all file groups of partitions, with a replacecommit."""
COMPACTIONS = frozenset({COMPACT, LOG_COMPACT})
"""Operations that change neither the records of a file group nor the file groups of keys."""
REWRITING_OPERATIONS = COMPACTIONS | {CLUSTER}
"""Operations that rewrite rows, which keep their commit times."""
