"""One spelling for all URIs of a location."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"^([A-Za-z][\w+.-]*):(?=/)")
_CLIENTS_OF_S3 = frozenset({"s3a", "s3n"})
_THIS_HOST = re.compile(r"^//localhost(?=/|$)", re.IGNORECASE)


def canonical_uri(uri: str) -> str:
    """Return a text that is the same for all spellings of a location: of local ones (``/t``, ``file:/t``,
    ``file:///t/``, ``file://localhost/t``), and of those in S3 (``s3``, ``s3a``, ``s3n``). It identifies the location,
    and cannot be opened.

    >>> canonical_uri("file:///t//p/"), canonical_uri("s3a://bucket/t")
    ('/t/p', 's3:/bucket/t')
    """
    match = _SCHEME.match(uri)
    scheme = "file" if match is None else match[1].lower()
    path = uri if match is None else uri[match.end() :]
    if match is not None and scheme == "file":
        path = _THIS_HOST.sub("", path)
    path = re.sub(r"/+", "/", path).rstrip("/")
    if scheme == "file":
        return path
    return f"{'s3' if scheme in _CLIENTS_OF_S3 else scheme}:{path}"
