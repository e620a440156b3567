"""A manipulation stack that reaches round an obstacle: planner, controller over physics, state publisher, bench client."""
