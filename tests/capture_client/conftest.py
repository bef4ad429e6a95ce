from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine must not fail a property; a hang is caught by the timeout of pytest.
settings.register_profile("core", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("core")
