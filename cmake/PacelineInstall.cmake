# `cmake --install`: headers, libraries, executables and the package that find_package(Paceline) reads.
include(CMakePackageConfigHelpers)

# Called last: installs every library of paceline_library() and the script targets.
function(paceline_install)
  get_property(libraries GLOBAL PROPERTY PACELINE_LIBRARIES)
  add_custom_target(product)  # What is installed and what scripts need, without tests.
  foreach(target IN LISTS libraries ITEMS paceline paceline_train_header paceline_train_header_of_scripts)
    if(TARGET ${target})
      add_dependencies(product ${target})
    endif()
  endforeach()
  install(TARGETS ${libraries} EXPORT PacelineTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TARGET paceline)
    install(TARGETS paceline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  install(EXPORT PacelineTargets NAMESPACE Paceline:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Paceline)

  # A public header lies in include/, what it includes beside it in include/paceline/, under the folder it has in the sources.
  foreach(public IN ITEMS actors/include algorithms/job/include algorithms/train/include)
    if(EXISTS "${PROJECT_SOURCE_DIR}/${public}")
      install(DIRECTORY "${public}/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
    endif()
  endforeach()
  foreach(folder IN ITEMS runtime scheduler actors algorithms)
    install(DIRECTORY "${folder}" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/paceline FILES_MATCHING PATTERN "*.h"
            PATTERN "include" EXCLUDE)
    install(DIRECTORY "${PROJECT_BINARY_DIR}/${folder}" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/paceline
            FILES_MATCHING PATTERN "*.capnp.h" PATTERN "CMakeFiles" EXCLUDE)
  endforeach()

  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Paceline")
  set(PACELINE_WITH_TRAIN OFF)
  if(TARGET paceline_train)
    set(PACELINE_WITH_TRAIN ON)
  endif()
  configure_package_config_file(cmake/PacelineConfig.cmake.in "${PROJECT_BINARY_DIR}/PacelineConfig.cmake"
                                INSTALL_DESTINATION ${package})
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/PacelineConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/PacelineConfig.cmake" "${PROJECT_BINARY_DIR}/PacelineConfigVersion.cmake"
                cmake/PacelinePackages.cmake cmake/PacelineTorch.cmake DESTINATION ${package})
endfunction()
