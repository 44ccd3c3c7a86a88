"""Objects of S3, Google Cloud Storage, Azure and of this process's memory, through ``obstore``.

An object appears atomically. Create-if-absent and conditional replacement are conditional puts (``If-None-Match``,
``If-Match`` on the ETag, ``ifGenerationMatch`` on Google Cloud Storage). There are no folders; the ``dir/`` placeholder
objects of Hadoop are not listed as files.
"""

from __future__ import annotations

import builtins
import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import (
    AlreadyExistsError,
    HudiError,
    NotFoundError,
    PreconditionFailedError,
    StorageError,
    UnansweredError,
)
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.object_store.conditional_put import conditional_put
from pyhudi.storage.object_store.object_store_location import PREFIX as OPTION_PREFIX
from pyhudi.storage.object_store.object_store_location import ObjectStoreLocation, reason_of
from pyhudi.storage.object_store.object_streams import ObjectReader, Upload
from pyhudi.storage.object_store.obstore_package import memory_store, obstore, obstore_exceptions
from pyhudi.storage.storage_protocol import LISTING_SCHEMA, FileStat, clean_path, join_path

_LIST_CHUNK = 10_000
_DELETE_BATCH = 1_000
_END = 512 * 1024
"""Bytes read from the end of an object when it is opened. Footers with a bloom filter of the default size have 430
KiB."""
_WITHOUT_SUFFIXES = frozenset({"az"})
"""Kinds of stores that cannot read the last bytes of an object without its size."""


class ObjectStorage:
    """A prefix in a bucket or container. Created by :func:`pyhudi.storage.open_storage`.

    The connection is opened on first use, once per process. A pickled instance contains the address and the options,
    including credentials.
    """

    def __init__(self, location: ObjectStoreLocation) -> None:
        self._location = location
        self._connected: tuple[int, Any] | None = None
        if location.kind == "memory":
            self._store()

    @property
    def root(self) -> str:
        return self._location.root

    def uri(self, path: str = "") -> str:
        return join_path(self._location.spark_root, clean_path(path))

    def __repr__(self) -> str:
        return f"ObjectStorage({self.root!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStorage) and self._location == other._location

    def __hash__(self) -> int:
        return hash((ObjectStorage, self.root))

    def __getstate__(self) -> ObjectStoreLocation:
        return self._location

    def __setstate__(self, location: ObjectStoreLocation) -> None:
        self._location = location
        self._connected = None

    @property
    def unwrapped(self) -> ObjectStorage:
        return self

    @property
    def is_in_process(self) -> bool:
        """True if the objects are in the memory of this process."""
        return self._location.kind == "memory"

    @property
    def settings(self) -> dict[str, str]:
        """The options to access the store, including credentials."""
        return {OPTION_PREFIX + name: value for name, value in self._location.settings.items()}

    def _store(self) -> Any:
        pid = os.getpid()
        if self._connected is None or self._connected[0] != pid:
            self._connected = (pid, self._connect())
        return self._connected[1]

    def _connect(self) -> Any:
        is_memory = self._location.kind == "memory"
        return memory_store(self._location) if is_memory else self._location.connect(obstore())

    def _key(self, path: str) -> str:
        return join_path(self._location.prefix, clean_path(path))

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        with self._errors(path):
            return bytes(obstore().get(self._store(), self._key(path)).bytes())

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        if length <= 0:
            return b""
        with self._errors(path):
            try:
                return bytes(obstore().get_range(self._store(), self._key(path), start=offset, length=length))
            except (obstore_exceptions().GenericError, ValueError):  # by store, where the range is past the end
                stat = self.stat(path)
                if stat is None or stat.size > offset:
                    raise
                return b""

    def stat(self, path: str) -> FileStat | None:
        with self._errors(path):
            try:
                meta = obstore().head(self._store(), self._key(path))
            except FileNotFoundError:
                return None
        return FileStat(path, meta["size"], int(meta["last_modified"].timestamp() * 1000), self._version(meta))

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def open_input(self, path: str) -> Any:
        size, end = self._end_of(path)
        return pa.PythonFile(ObjectReader(self, path, size, end), mode="r")

    def _end_of(self, path: str) -> tuple[int, bytes]:
        """Return the size of an object and its last bytes, with one request where the store can do that.

        Readers of columnar files begin with the footer, and small files are read completely.
        """
        if self._location.kind in _WITHOUT_SUFFIXES:
            return self._size_of(path), b""
        with self._errors(path):
            try:
                answer = obstore().get(self._store(), self._key(path), options={"range": {"suffix": _END}})
                return answer.meta["size"], bytes(answer.bytes())
            except FileNotFoundError:
                raise
            except (obstore_exceptions().BaseError, ValueError):  # such as that an empty object has no such range
                return self._size_of(path), b""

    def _size_of(self, path: str) -> int:
        stat = self.stat(path)
        if stat is None:
            raise NotFoundError(f"no object {self.uri(path)!r}")
        return stat.size

    # -- listing ---------------------------------------------------------------------------------------------------

    def list(self, path: str = "", *, recursive: bool = False) -> pa.Table:
        prefix = self._key(path)
        with self._errors(path):
            if recursive:
                stream = obstore().list(self._store(), prefix, chunk_size=_LIST_CHUNK, return_arrow=True)
                batches = [pa.record_batch(batch) for batch in stream]
                listing = pa.Table.from_batches(batches) if batches else None
            else:
                listing = pa.table(obstore().list_with_delimiter(self._store(), prefix, return_arrow=True)["objects"])
        if listing is None or not listing.num_rows:
            return LISTING_SCHEMA.empty_table()
        listing = self._without_placeholders(listing.select(["path", "size", "last_modified"]), prefix)
        paths = listing["path"].cast(pa.string())
        cut = len(self._location.prefix) + 1 if self._location.prefix else 0
        times = listing["last_modified"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        columns = [pc.utf8_slice_codeunits(paths, cut) if cut else paths, listing["size"].cast(pa.int64()), times]
        return pa.table(columns, schema=LISTING_SCHEMA)

    def _without_placeholders(self, listing: pa.Table, prefix: str) -> pa.Table:
        """Remove placeholders of folders from a listing.

        Hadoop marks a folder with an empty object ``folder/``, which the object library lists as ``folder``. Such a row
        is identified by being a parent of other rows, or by the absence of an object with that name. Names with an
        extension (nearly all files of a table) are assumed to be files.
        """
        empty = listing.filter(pc.equal(listing["size"], 0))["path"].cast(pa.string())
        if not len(empty):
            return listing
        parents = pc.unique(pc.replace_substring_regex(listing["path"].cast(pa.string()), r"/[^/]*$", ""))
        certain = pc.is_in(empty, value_set=pa.concat_arrays([parents, pa.array([prefix], pa.string())]))
        doubtful = empty.filter(
            pc.and_(pc.invert(certain), pc.invert(pc.match_substring_regex(empty, r"[^/]\.[^/.]*$")))
        )
        placeholders = [*empty.filter(certain).to_pylist(), *self._absent(doubtful.to_pylist())]
        return listing.filter(
            pc.invert(pc.is_in(listing["path"].cast(pa.string()), value_set=pa.array(placeholders, pa.string())))
        )

    def _absent(self, keys: builtins.list[str]) -> Iterator[str]:
        for key in keys:
            try:
                obstore().head(self._store(), key)
            except FileNotFoundError:
                yield key

    def list_dirs(self, path: str = "") -> builtins.list[str]:
        with self._errors(path):
            prefixes = obstore().list_with_delimiter(self._store(), self._key(path))["common_prefixes"]
        return sorted(prefix.rsplit("/", 1)[-1] for prefix in prefixes)

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(self, path: str, data: bytes) -> None:
        with self._errors(path):
            obstore().put(self._store(), self._key(path), data, mode="overwrite", use_multipart=False)

    def create(self, path: str, data: bytes) -> None:
        with self._errors(path):
            self._conditional_put(path, data, "create")

    def replace(self, path: str, data: bytes, version: str | None) -> str:
        with self._errors(path):
            try:
                if version is None:
                    return self._version(self._conditional_put(path, data, "create"))
                by = "version" if self._location.kind == "gs" else "e_tag"
                return self._version(self._conditional_put(path, data, {by: version}))
            except FileNotFoundError as error:  # Some stores respond so if the object to match no longer exists.
                raise PreconditionFailedError(f"{self.uri(path)!r} no longer exists") from error
            except obstore_exceptions().AlreadyExistsError as error:
                raise PreconditionFailedError(f"{self.uri(path)!r} already exists") from error

    def _conditional_put(self, path: str, data: bytes, mode: str | Mapping[str, str]) -> Any:
        return conditional_put(self._store(), self._key(path), data, mode, uri=self.uri(path))

    def _version(self, meta: Mapping[str, Any]) -> str:
        version = meta.get("version") if self._location.kind == "gs" else meta.get("e_tag")
        if not version:
            raise StorageError(
                f"the store of {self.root!r} returns no versions of objects, so they cannot be replaced safely; "
                "use a store with ETags"
            )
        return str(version)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        upload = Upload(obstore(), self._store(), self._key(path))
        try:
            yield cast("BinaryIO", upload)
        except BaseException:
            upload.abandon()
            raise
        with self._errors(path):
            upload.finish()

    def make_dirs(self, path: str) -> None:
        clean_path(path)

    def set_modified(self, path: str, mtime_ms: int) -> None:  # noqa: ARG002
        clean_path(path)

    # -- deleting --------------------------------------------------------------------------------------------------

    def delete(self, path: str) -> None:
        self._delete_keys([self._key(path)])

    def delete_many(self, paths: Iterable[str]) -> None:
        keys = [self._key(path) for path in paths]
        concurrent_map(self._delete_keys, [keys[at : at + _DELETE_BATCH] for at in range(0, len(keys), _DELETE_BATCH)])

    def _delete_keys(self, keys: builtins.list[str]) -> None:
        with self._errors(keys[0].removeprefix(self._location.prefix).removeprefix("/")):
            try:
                obstore().delete(self._store(), keys)
            except FileNotFoundError:  # Stores without bulk requests stop at an absent object.
                concurrent_map(self._delete_if_exists, keys)

    def _delete_if_exists(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            obstore().delete(self._store(), key)

    def delete_tree(self, path: str) -> None:
        with self._errors(path):
            for chunk in obstore().list(self._store(), self._key(path), chunk_size=_DELETE_BATCH):
                if chunk:
                    self._delete_keys([meta["path"] for meta in chunk])

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        """Convert errors of the object library to those of pyhudi."""
        try:
            yield
        except HudiError:
            raise
        except FileNotFoundError as error:
            raise NotFoundError(f"no object {self.uri(path)!r}") from error
        except obstore_exceptions().AlreadyExistsError as error:
            raise AlreadyExistsError(f"object {self.uri(path)!r} already exists") from error
        except obstore_exceptions().PreconditionError as error:
            raise PreconditionFailedError(f"{self.uri(path)!r} was changed or removed by another process") from error
        except (obstore_exceptions().GenericError, TimeoutError) as error:  # Also after the retries have failed.
            raise UnansweredError(f"{self.uri(path)!r}: {reason_of(error)}") from error
        except (obstore_exceptions().BaseError, OSError, ValueError) as error:
            raise StorageError(f"{self.uri(path)!r}: {reason_of(error)}") from error
