"""Commits are sent to a URL, as by Apache Hudi's ``HoodieWriteCommitHttpCallback``."""

from __future__ import annotations

import urllib.request

from pyhudi.config import Options, options
from pyhudi.config.http_urls import is_http_url
from pyhudi.errors import ConfigError

_API_KEY_HEADER = "HUDI-CALLBACK-KEY"


def check_http_callback(opts: Options) -> None:
    """Check the URL and the headers.

    Raises:
        ConfigError: They are missing or invalid.
    """
    url = opts.get_typed(options.CALLBACK_URL)
    if not url or not is_http_url(url):
        raise ConfigError(
            f"{options.CALLBACK_ON.key}=true requires an HTTP or HTTPS URL in {options.CALLBACK_URL.key}, not {url!r}"
        )
    _custom_headers(opts)


def post_commit(document: str, opts: Options) -> None:
    """Send the JSON document of a commit by a POST request.

    Raises:
        OSError: The request fails, or the status is an error. The message has the URL.
    """
    url = str(opts.get_typed(options.CALLBACK_URL))
    headers = {
        _API_KEY_HEADER: opts.get_typed(options.CALLBACK_API_KEY),
        "Content-Type": "application/json; charset=UTF-8",
        **_custom_headers(opts),
    }
    request = urllib.request.Request(url, document.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=opts.get_typed(options.CALLBACK_TIMEOUT)):
            pass
    except OSError as failure:
        raise OSError(f"POST to {url}: {failure}") from failure


def _custom_headers(opts: Options) -> dict[str, str]:
    """Return the headers of the options.

    Raises:
        ConfigError: A header is not ``name:value``.
    """
    headers = {}
    for part in filter(str.strip, opts.get_typed(options.CALLBACK_HEADERS).split(";")):
        name, _, value = (text.strip() for text in part.partition(":"))
        if not name or not value or not (name + value).isprintable():
            raise ConfigError(
                f"{options.CALLBACK_HEADERS.key} has the invalid header {part.strip()!r}; write name:value;name:value"
            )
        headers[name] = value
    return headers
