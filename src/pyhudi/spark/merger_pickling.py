"""Check that a custom merger can be sent to Spark's executors."""

from __future__ import annotations

from pyspark import cloudpickle

from pyhudi.config import options
from pyhudi.errors import ConfigError
from pyhudi.merge.modes.merge_rules import MergeRules


def check_picklable(rules: MergeRules) -> None:
    """Check that the custom merger of merge rules, if there is one, can be pickled. Called before tasks are started,
    and before anything is written.

    Raises:
        ConfigError: It cannot.
    """
    merger = rules.merger
    if merger is None:
        return
    try:
        cloudpickle.dumps(merger)
    except Exception as error:  # of any value that the object refers to
        raise ConfigError(
            f"the merger {type(merger).__qualname__} ({options.MERGE_STRATEGY_ID.key}={merger.strategy_id}) "
            f"cannot be pickled, so Spark cannot send it to its executors: {error}. Create what cannot be pickled "
            "(locks, connections, open files, sessions) in merge(), or leave it out by __getstate__"
        ) from error
