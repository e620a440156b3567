"""A small ROS 2 robot: camera, detector, planner and controller as unmodified rclpy nodes, each a process of its own."""
