"""taut in ROS 2's launch: `Record`, an action that records the nodes which are launched after it.

`taut_record` in launch files in XML and YAML; launch finds it by the entry point `launch.frontend.launch_extension`.
"""

from taut_ros2.record import Record

__all__ = ["Record"]
