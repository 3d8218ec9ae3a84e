# Variables: BUILD the build tree, SOURCE the project to build against it, WORK a folder to do it in, COMPILER, TRAIN.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output WORKING_DIRECTORY "${WORK}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed")
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" -G Ninja "-DCMAKE_PREFIX_PATH=${WORK}/installed"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" -DTRAIN=${TRAIN})
run("${CMAKE_COMMAND}" --build "${WORK}/build")

# What was built runs, on a cluster of the test's own; so does a script that the installed `paceline` compiles.
set(paceline "${WORK}/installed/bin/paceline")
set(ENV{XDG_CACHE_HOME} "${WORK}/cache")
set(ENV{PACELINE_CLUSTER} "")
execute_process(COMMAND mktemp -d -t pl-XXXXXX OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(ENV{XDG_RUNTIME_DIR} "${runtime}")
run("${paceline}" version)
run("${paceline}" run "${WORK}/build/plain")
run("${paceline}" run "${SOURCE}/plain.cpp")
if(TRAIN)
  run("${paceline}" run "${WORK}/build/train")
endif()
file(REMOVE_RECURSE "${WORK}" "${runtime}")
