# paceline_library(NAME SOURCES a.cc ... DEPS other ... [TESTS a_test.cc ...])
#   One static library a folder, and one test executable NAME_test from the unit tests beside the code.
function(paceline_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;TESTS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE $<BUILD_INTERFACE:paceline_options>)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
                                            $<INSTALL_INTERFACE:include/paceline>)
  set_property(GLOBAL APPEND PROPERTY PACELINE_LIBRARIES ${name})
  if(ARG_TESTS)
    paceline_test(${name}_test SOURCES ${ARG_TESTS} DEPS ${name})
  endif()
endfunction()

# paceline_test(NAME SOURCES ... DEPS ... [LABELS ...] [TIMEOUT seconds]): a GoogleTest executable, registered case by case.
function(paceline_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} paceline_options GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# paceline_bench(NAME SOURCES ... DEPS ...): a Google Benchmark executable; ctest runs it once, tiny, so that it never rots.
function(paceline_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} paceline_options benchmark::benchmark)
  add_test(NAME ${name} COMMAND ${name} --benchmark_min_time=0.001)
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS bench)
endfunction()
