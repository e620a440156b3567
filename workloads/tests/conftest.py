"""No test here is about time: a busy machine must not make one fail."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
