"""Typed constants for every option that has an effect in pyhudi: ``options.RECORDKEY_FIELD``, ``options.OPERATION``,
…"""

from __future__ import annotations

from pyhudi.config.options.bootstrap_options import *  # noqa: F403
from pyhudi.config.options.cleaning_options import *  # noqa: F403
from pyhudi.config.options.clustering_options import *  # noqa: F403
from pyhudi.config.options.metrics_options import *  # noqa: F403
from pyhudi.config.options.pyhudi_options import *  # noqa: F403
from pyhudi.config.options.read_options import *  # noqa: F403
from pyhudi.config.options.services_options import *  # noqa: F403
from pyhudi.config.options.table_options import *  # noqa: F403
from pyhudi.config.options.ttl_options import *  # noqa: F403
from pyhudi.config.options.write_options import *  # noqa: F403
