"""What holds for all tests: the time that an example of a property test takes says nothing of the code."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("pyhudi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pyhudi")
