# `cmake --install`: headers, libraries, executables and the package that find_package(Paceline) reads.
include(CMakePackageConfigHelpers)

# `cpack` in the build folder: a package for the Debian that this was built on. It depends on what scripts are compiled with.
function(paceline_debian_package)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME paceline)
  set(CPACK_PACKAGE_CONTACT "the Paceline authors")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Distributed training that does not wait for stragglers, for libtorch and C++")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_VERBATIM_VARIABLES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++, libcapnp-dev, libzmq3-dev, cppzmq-dev, libsodium-dev, libspdlog-dev, libcli11-dev, libcpp-httplib-dev, nlohmann-json3-dev, libcereal-dev, libexpected-dev, libsqlite3-dev, zlib1g-dev, libpng-dev, libturbojpeg0-dev, libhwloc-dev, libdw1, pkg-config")
  if(TARGET paceline_train AND PACELINE_TORCH_ROOT STREQUAL "/usr")
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libtorch-dev, libopenblas0-pthread")
  endif()
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "dataset-fashion-mnist")
  include(CPack)
endfunction()

# What is installed in `folder` before this is called keeps its symbols and loses its line numbers, of which a job of 3 MB would
# have 16 MB more.
function(paceline_strip_installed_archives folder)
  if(CMAKE_STRIP)
    install(CODE "
      file(GLOB archives \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/libpaceline_*.a\")
      execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \${archives} COMMAND_ERROR_IS_FATAL ANY)")
  endif()
endfunction()

# Licence, pages and examples, and what shells complete `paceline` by, where Debian's shells look for it.
function(paceline_install_papers)
  set(papers "${CMAKE_INSTALL_DATADIR}/doc/paceline")
  install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION "${papers}")
  install(FILES LICENSE DESTINATION "${papers}" RENAME copyright)  # What Debian calls it.
  install(DIRECTORY docs examples DESTINATION "${papers}" PATTERN "CMakeLists.txt" EXCLUDE PATTERN "*.py" EXCLUDE)
  if(NOT TARGET paceline)
    return()
  endif()
  set(scripts "")
  foreach(place IN ITEMS bash:bash-completion/completions/paceline zsh:zsh/vendor-completions/_paceline
                         fish:fish/vendor_completions.d/paceline.fish)
    string(REGEX MATCH "^(.*):(.*)$" place "${place}")
    set(script "${PROJECT_BINARY_DIR}/completions/${CMAKE_MATCH_2}")
    cmake_path(GET CMAKE_MATCH_2 PARENT_PATH folder)
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/completions/${folder}")
    add_custom_command(OUTPUT "${script}" COMMAND paceline completion ${CMAKE_MATCH_1} > "${script}" DEPENDS paceline VERBATIM)
    install(FILES "${script}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}")
    list(APPEND scripts "${script}")
  endforeach()
  add_custom_target(completions ALL DEPENDS ${scripts})
  add_dependencies(product completions)
endfunction()

# Called last: installs what scripts link and include, and the command line.
function(paceline_install)
  get_property(libraries GLOBAL PROPERTY PACELINE_LIBRARIES)
  add_custom_target(product)  # What is installed and what scripts need, without tests.
  foreach(target IN LISTS libraries ITEMS paceline paceline_train_header paceline_train_header_of_scripts)
    if(TARGET ${target})
      add_dependencies(product ${target})
    endif()
  endforeach()
  set(linked "")
  foreach(script IN ITEMS paceline_script paceline_train_script)
    if(TARGET ${script})
      paceline_link_closure(ours theirs ${script})
      list(APPEND linked ${script} ${ours})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES linked)
  install(TARGETS ${linked} EXPORT PacelineTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  paceline_strip_installed_archives(${CMAKE_INSTALL_LIBDIR})
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
            PATTERN "include" EXCLUDE PATTERN "test_support" EXCLUDE PATTERN "*test_support.h" EXCLUDE PATTERN "test_directory.h" EXCLUDE)
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
  paceline_install_papers()
  paceline_debian_package()
endfunction()
