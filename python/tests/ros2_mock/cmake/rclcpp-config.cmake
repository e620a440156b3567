if(NOT TARGET rclcpp::rclcpp)
  add_library(rclcpp::rclcpp INTERFACE IMPORTED)
  set_target_properties(rclcpp::rclcpp PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/..")
endif()
