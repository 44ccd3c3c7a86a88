"""Typed constants of options: ``options.RECORDKEY_FIELD``, ``options.OPERATION``, …

There is one for every accepted option that pyhudi interprets, with its type, default and documentation, and one for
those that are accepted without effect. `Options` reads and validates values by these constants.
"""

from __future__ import annotations

from pyhudi.config.options.aws_options import *  # noqa: F403
from pyhudi.config.options.bootstrap_options import *  # noqa: F403
from pyhudi.config.options.catalog_sync_options import *  # noqa: F403
from pyhudi.config.options.cleaning_options import *  # noqa: F403
from pyhudi.config.options.clustering_options import *  # noqa: F403
from pyhudi.config.options.compaction_options import *  # noqa: F403
from pyhudi.config.options.lock_options import *  # noqa: F403
from pyhudi.config.options.metadata_options import *  # noqa: F403
from pyhudi.config.options.metrics_options import *  # noqa: F403
from pyhudi.config.options.no_effect_options import *  # noqa: F403
from pyhudi.config.options.pyhudi_options import *  # noqa: F403
from pyhudi.config.options.read_options import *  # noqa: F403
from pyhudi.config.options.table_options import *  # noqa: F403
from pyhudi.config.options.transaction_options import *  # noqa: F403
from pyhudi.config.options.write_options import *  # noqa: F403
