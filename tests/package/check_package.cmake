function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed")
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" -G Ninja "-DCMAKE_PREFIX_PATH=${WORK}/installed"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" -DTRAIN=${TRAIN})
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/installed/bin/paceline" version)
file(REMOVE_RECURSE "${WORK}")
