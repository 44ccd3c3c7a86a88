"""Names of files and folders that every table has, relative to its root."""

META_FOLDER = ".hoodie"
"""Folder of everything that is no data file."""

AUX_FOLDER = f"{META_FOLDER}/.aux"
BUCKET_FOLDER = f"{META_FOLDER}/.bucket_index"
LOCKS_FOLDER = f"{META_FOLDER}/.locks"
INDEX_DEFINITIONS_FOLDER = f"{META_FOLDER}/.index_defs"
SCHEMA_FOLDER = f"{META_FOLDER}/.schema"

METADATA_FOLDER = f"{META_FOLDER}/metadata"
"""Root of the metadata table."""
METADATA_META_FOLDER = f"{METADATA_FOLDER}/{META_FOLDER}"

PARTITION_METADATA = ".hoodie_partition_metadata"
"""Name, without extension, of the file that marks a folder as a partition."""
