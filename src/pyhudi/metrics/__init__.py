"""Metrics of writes and table services.

Takes a report of each action and passes it to the callbacks of the process, to the log, and to the reporter in
``hoodie.metrics.*``. Failures never affect a write.
"""

from pyhudi.metrics.action_report import ActionReport
from pyhudi.metrics.listeners import Listener, add_listener, remove_listener
from pyhudi.metrics.memory_reporter import in_memory_metrics

__all__ = ["ActionReport", "Listener", "add_listener", "in_memory_metrics", "remove_listener"]
