"""The same system as nodes of ROS 2: rclpy, and the controller on rcl in C. These nodes know nothing of taut."""
