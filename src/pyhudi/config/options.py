"""Typed constants for every option that has a meaning here: ``options.RECORDKEY_FIELD``, ``options.OPERATION``, …"""

from __future__ import annotations

from pyhudi.config.options_cleaning import *  # noqa: F403
from pyhudi.config.options_clustering import *  # noqa: F403
from pyhudi.config.options_metrics import *  # noqa: F403
from pyhudi.config.options_pyhudi import *  # noqa: F403
from pyhudi.config.options_read import *  # noqa: F403
from pyhudi.config.options_services import *  # noqa: F403
from pyhudi.config.options_table import *  # noqa: F403
from pyhudi.config.options_ttl import *  # noqa: F403
from pyhudi.config.options_write import *  # noqa: F403
