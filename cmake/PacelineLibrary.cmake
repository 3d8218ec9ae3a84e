# Standard headers that most units include, precompiled with paceline_base.
set(PACELINE_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstdio> <cstring> <deque>
  <filesystem> <fstream> <functional> <iterator> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream>
  <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>)

# paceline_compile(TARGET SOURCES ... DEPS ... [HEADERS target]): what uses torch is compiled as scripts are (PacelineScripts), all else
# with the precompiled headers of that target (paceline_base, or paceline_test_main for unit tests).
function(paceline_compile target)
  cmake_parse_arguments(ARG "" "HEADERS" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS paceline_base)
  endif()
  if("paceline_train" IN_LIST ARG_DEPS OR "Paceline::train" IN_LIST ARG_DEPS)
    paceline_compile_as_script(${target} ${ARG_SOURCES})
  elseif(target STREQUAL "paceline_base")
    target_precompile_headers(${target} PRIVATE ${PACELINE_STANDARD_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM ${ARG_HEADERS})
  endif()
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # Else ccache keeps nothing that takes a precompiled header.
endfunction()

# paceline_unity(TARGET): its sources share what they include and their unnamed namespaces.
function(paceline_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PACELINE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# How units of tests are compiled: in sanitized builds without optimising, which halves the time of what compiles longest; what they
# test is optimised.
if(PACELINE_SANITIZE)
  set(PACELINE_TEST_OPTIONS -O0)
endif()

# paceline_library(NAME SOURCES a.cc ... DEPS other ... [TESTS a_test.cc ...])
#   One static library a folder, and one test executable NAME_test from the unit tests beside the code.
function(paceline_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;TESTS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE $<BUILD_INTERFACE:paceline_options>)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
                                            $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/paceline>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  paceline_compile(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS})
  paceline_unity(${name})
  set_property(GLOBAL APPEND PROPERTY PACELINE_LIBRARIES ${name})
  if(ARG_TESTS)
    paceline_test(${name}_test UNIT SOURCES ${ARG_TESTS} DEPS ${name} ${ARG_DEPS})
  endif()
endfunction()

# What a test exits with that was skipped (tests/support/main/test_main.cc, tests/integration/harness.py).
set(PACELINE_SKIPPED 77)

# paceline_test(NAME [UNIT] SOURCES ... DEPS ... [LABELS ...] [TIMEOUT seconds]): a GoogleTest executable, one ctest case. Sanitized
# builds have none that is `long`; where PACELINE_UNIT_TESTS is off there are no UNIT tests but those of libtorch.
function(paceline_test name)
  cmake_parse_arguments(ARG "UNIT" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(PACELINE_SANITIZE AND "long" IN_LIST ARG_LABELS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(PACELINE_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} paceline_options GTest::gmock paceline_test_main)
  paceline_compile(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} HEADERS paceline_test_main)
  paceline_unity(${name})
  target_compile_options(${name} PRIVATE ${PACELINE_TEST_OPTIONS})
  if(ARG_UNIT AND NOT PACELINE_UNIT_TESTS AND NOT "paceline_train" IN_LIST ARG_DEPS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" SKIP_RETURN_CODE ${PACELINE_SKIPPED})
endfunction()

# paceline_bench(NAME SOURCES ... DEPS ...): a Google Benchmark executable; ctest runs it once, tiny, so that it never rots.
# Sanitized builds have none.
function(paceline_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(PACELINE_SANITIZE)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} paceline_options benchmark::benchmark)
  paceline_compile(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS})
  add_test(NAME ${name} COMMAND ${name} --benchmark_min_time=0.001)
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS bench)
endfunction()
