"""Leader→follower teleoperation of two simulated Fairino arms. Run it: ``python -m workloads.teleop``."""
