"""A quadruped of 12 simulated servos on 4 buses that stands, trots in place, and lowers itself when something fails."""
