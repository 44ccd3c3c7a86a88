"""Values of options and table properties, spelled as in Apache Hudi, by subject: tables, keys, writes, files,
concurrency, queries and services."""

from __future__ import annotations

from pyhudi.config.enums.concurrency_enums import *  # noqa: F403
from pyhudi.config.enums.file_enums import *  # noqa: F403
from pyhudi.config.enums.key_enums import *  # noqa: F403
from pyhudi.config.enums.query_enums import *  # noqa: F403
from pyhudi.config.enums.service_enums import *  # noqa: F403
from pyhudi.config.enums.table_enums import *  # noqa: F403
from pyhudi.config.enums.write_enums import *  # noqa: F403
