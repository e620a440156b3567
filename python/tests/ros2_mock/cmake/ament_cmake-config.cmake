# What ament_package() does is colcon's business.
function(ament_package)
endfunction()
