# find_package(taut): taut::taut is the header taut.h, with nothing of taut's to link.
# find_package(taut COMPONENTS guard): taut::guard besides, the speed guard's library, which the wheel has. In a
# checkout cargo builds it.
#
# The wheel installs this under its prefix (`python -m taut --cmake-dir` says where); a checkout is a prefix, too.

get_filename_component(_taut_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
include(CMakeFindDependencyMacro)
find_dependency(Threads)

if(NOT TARGET taut::taut)
  add_library(taut::taut INTERFACE IMPORTED)
  set_target_properties(taut::taut PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_taut_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()

find_library(taut_GUARD_LIBRARY NAMES libtaut_guard.a taut_guard
  PATHS "${_taut_prefix}/lib" "${_taut_prefix}/target/release" NO_DEFAULT_PATH)
mark_as_advanced(taut_GUARD_LIBRARY)
if(taut_GUARD_LIBRARY AND NOT TARGET taut::guard)
  add_library(taut::guard UNKNOWN IMPORTED)
  set_target_properties(taut::guard PROPERTIES
    IMPORTED_LOCATION "${taut_GUARD_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "taut::taut;Threads::Threads;${CMAKE_DL_LIBS};m")
endif()

foreach(_component IN LISTS taut_FIND_COMPONENTS)
  if(NOT TARGET taut::${_component} AND taut_FIND_REQUIRED_${_component})
    set(taut_FOUND FALSE)
    set(taut_NOT_FOUND_MESSAGE "taut::${_component} is not there. The component guard is in the wheel (pip install taut-*.whl, \
taut_DIR from python -m taut --cmake-dir); in a checkout run: cargo rustc --release -p taut-guard --features c --crate-type staticlib")
  endif()
endforeach()
unset(_component)
unset(_taut_prefix)
