"""Options of commit callbacks (https://hudi.apache.org/docs/platform_services_post_commit_callback)."""

from __future__ import annotations

from pyhudi.config.option import flag, integer, optional_text, text

_CALLBACK = "hoodie.write.commit.callback."
_HTTP = _CALLBACK + "http."

CALLBACK_ON = flag(_CALLBACK + "on", False, "If true, a URL is called after each commit of a write.")
CALLBACK_CLASS = text(
    _CALLBACK + "class",
    "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback",
    "Callback by its class name in Apache Hudi; only `HoodieWriteCommitHttpCallback` is supported.",
)
CALLBACK_URL = optional_text(_HTTP + "url", "HTTP or HTTPS URL that receives a POST request with a JSON document.")
CALLBACK_TIMEOUT = integer(_HTTP + "timeout.seconds", 30, "Seconds to wait for the URL.", least=1)
CALLBACK_API_KEY = text(
    _HTTP + "api.key", "hudi_write_commit_http_callback", "Value of the header `HUDI-CALLBACK-KEY`."
)
CALLBACK_HEADERS = text(_HTTP + "custom.headers", "", "Further headers, as `name:value;name:value`.")
