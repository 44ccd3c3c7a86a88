"""Conditional puts of objects, which are recognised if their response is lost.

A put whose response is lost is sent again, and the second request fails because the first one succeeded. Therefore each
conditional put stores a unique token in the metadata of the object, by which its own object is recognised.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from pyhudi.errors import UnansweredError
from pyhudi.storage.object_store.obstore_package import obstore, obstore_exceptions

_TOKEN = "pyhudiput"
"""Key of the token in the metadata of objects. Azure allows letters, digits and underscores; proxies drop
underscores."""
_WAITS_FOR_OTHERS = (0.0, 0.1, 0.3, 1.0)
"""Seconds before each attempt to create an object for which other requests are in progress."""


def conditional_put(store: Any, key: str, data: bytes, mode: str | Mapping[str, str], *, uri: str) -> Any:
    """Put under a condition. Return the attributes of the object from the store.

    S3 also refuses to create an object while another request for its key is in progress, perhaps the first one of
    this put. Therefore it is sent again as long as there is no object.

    Args:
        store: The store of obstore.
        key: Key of the object.
        data: Its content.
        mode: ``create``, or the version that the object has.
        uri: URI of the object in messages.

    Raises:
        UnansweredError: Other requests for the object are in progress all the time. Errors of obstore are passed on.
    """
    token = uuid.uuid4().hex
    for wait in _WAITS_FOR_OTHERS:
        time.sleep(wait)
        try:
            return obstore().put(store, key, data, mode=mode, use_multipart=False, attributes={_TOKEN: token})
        except (obstore_exceptions().AlreadyExistsError, obstore_exceptions().PreconditionError):
            stored = _head(store, key)
            if stored is not None and stored.attributes.get(_TOKEN) == token:
                return stored.meta
            if stored is not None or mode != "create":
                raise
    raise UnansweredError(f"{uri!r} does not exist, and could not be created because of conflicting requests for it")


def _head(store: Any, key: str) -> Any | None:
    """Return the response for an object without its content; None if it does not exist."""
    try:
        return obstore().get(store, key, options={"head": True})
    except FileNotFoundError:
        return None
