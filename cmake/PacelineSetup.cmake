set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(PACELINE_SANITIZE "" CACHE STRING "Sanitizers for every target, as -fsanitize= takes them: address,undefined or thread")
option(PACELINE_CUDA "Build the CUDA parts (needs a CUDA toolkit)" OFF)
option(PACELINE_TRAIN "Build what needs libtorch (paceline/train.h and its examples)" ON)
option(PACELINE_UNITY "Compile up to eight sources of a library or test as one unit: half the time for all, more after each small change" ON)
option(PACELINE_UNIT_TESTS "Build the unit tests; those of libtorch in any case" ON)

# What one checkout has compiled serves in another: paths count relative to the sources. Sloppy about what precompiled headers need.
find_program(PACELINE_CCACHE ccache)
if(PACELINE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros "${PACELINE_CCACHE}")
endif()

# Line numbers in stack traces; full debug information costs a third of the compile time (configure with -DCMAKE_CXX_FLAGS=-g for it).
# Sanitized builds are optimised a little: compiling takes no longer, and their tests half the time.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

if(PACELINE_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  find_program(PACELINE_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(NOT PACELINE_NVCC)
    message(FATAL_ERROR "PACELINE_CUDA needs a CUDA toolkit, and there is no nvcc in PATH nor in /usr/local/cuda/bin: install one, or configure without PACELINE_CUDA")
  endif()
  set(CMAKE_CUDA_COMPILER "${PACELINE_NVCC}")
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
endif()

# The same for libraries and programs, so that they share precompiled headers; libraries become part of users' scripts.
add_compile_options(-fPIC)

# At most two compilations that include torch at once: each takes 2 GB.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS torch=2)

add_library(paceline_options INTERFACE)
target_compile_options(paceline_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(paceline_options INTERFACE -Wno-maybe-uninitialized)  # g++ 12 sees it in every std::variant that is moved.
endif()
target_include_directories(paceline_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
if(PACELINE_SANITIZE)
  # Not at every use of a pointer whether it is null, where the address sanitizer stops anyway, or misaligned, which x86 does not mind:
  # these two take 40 % of what compiling costs.
  # What is found ends the program, and with it the test.
  add_compile_options(-fsanitize=${PACELINE_SANITIZE} -fno-sanitize=null,alignment -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PACELINE_SANITIZE})
endif()
