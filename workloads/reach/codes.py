"""How a reach ended, as numbers of moveit_msgs/MoveItErrorCodes."""

SUCCESS = 1
PLANNING_FAILED = -1
CONTROL_FAILED = -4
TIMED_OUT = -6
PREEMPTED = -7
START_STATE_INVALID = -26
NO_IK_SOLUTION = -31
