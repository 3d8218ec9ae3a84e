set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(PACELINE_SANITIZE "" CACHE STRING "Sanitizers for every target, as -fsanitize= takes them: address,undefined or thread")
option(PACELINE_CUDA "Build the CUDA parts (needs a CUDA toolkit)" OFF)
option(PACELINE_TRAIN "Build what needs libtorch (paceline/train.h and its examples)" ON)

find_program(PACELINE_CCACHE ccache)
if(PACELINE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${PACELINE_CCACHE}")
endif()

# At most two compilations that include torch at once: each takes 2 GB.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS torch=2)

add_library(paceline_options INTERFACE)
target_compile_options(paceline_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(paceline_options INTERFACE -Wno-maybe-uninitialized)  # g++ 12 sees it in every std::variant that is moved.
endif()
target_include_directories(paceline_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
if(PACELINE_SANITIZE)
  add_compile_options(-fsanitize=${PACELINE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PACELINE_SANITIZE})
endif()
