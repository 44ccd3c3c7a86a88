"""Addresses of HTTP services in options."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_http_url(text: str) -> bool:
    """Return True if a text is the URL of an HTTP or HTTPS server."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.netloc)
