# What an actor script is built with: the targets Paceline::paceline and Paceline::train, the file paceline-compile.json that
# `paceline run` reads to build one by itself, and the precompiled header of paceline/train.h.

# One that a user links: everything a script needs, and the option that puts the library in front of `main`.
function(paceline_script_target name export_name)
  add_library(${name} INTERFACE)
  add_library(Paceline::${export_name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${export_name})
  target_link_libraries(${name} INTERFACE ${ARGN})
  target_link_options(${name} INTERFACE "LINKER:--wrap=main" "LINKER:--build-id")  # build-id: functions are named relative to it.
  set_property(GLOBAL APPEND PROPERTY PACELINE_LIBRARIES ${name})
endfunction()

# Everything that `target` links, directly or not: our static libraries in `ours`, others' (targets, files, -l options) in `theirs`.
function(paceline_link_closure ours theirs target)
  set(pending ${target})
  set(seen "")
  set(own "")
  set(foreign "")
  while(pending)
    list(POP_FRONT pending item)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(NOT item OR item MATCHES "^\\$<|::@" OR item IN_LIST seen)  # Conditions and directory markers: nothing to link.
      continue()
    endif()
    list(APPEND seen "${item}")
    if(NOT TARGET "${item}")
      list(APPEND foreign "${item}")
      continue()
    endif()
    get_target_property(links "${item}" INTERFACE_LINK_LIBRARIES)
    get_target_property(type "${item}" TYPE)
    get_target_property(imported "${item}" IMPORTED)
    if(links)
      list(APPEND pending ${links})
    endif()
    if(type STREQUAL "STATIC_LIBRARY" AND NOT imported)
      list(APPEND own "${item}")
    elseif(NOT type STREQUAL "INTERFACE_LIBRARY" AND NOT type STREQUAL "OBJECT_LIBRARY")
      list(APPEND foreign "$<TARGET_LINKER_FILE:${item}>")
    endif()
  endwhile()
  set(${ours} "${own}" PARENT_SCOPE)
  set(${theirs} "${foreign}" PARENT_SCOPE)
endfunction()

# A CMake list (generator expressions allowed) as the inside of a JSON array.
function(paceline_json_array out list)
  string(REPLACE "-Wl," "-Wl$<COMMA>" list "${list}")
  set(${out} "[\"$<JOIN:${list},\", \">\"]" PARENT_SCOPE)
endfunction()

# The include folders of a target as generator expressions: ours (of this project's sources and build) and others. libtorch's are
# others, also where they lie in ours, as those of a virtual environment in a clone do. What the compiler searches anyway is in
# neither: -isystem /usr/include hides libstdc++'s own headers.
function(paceline_include_folders ours others target)
  set(here "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  set(torch none ${PACELINE_TORCH_INCLUDES})
  foreach(paths IN ITEMS here torch)
    list(TRANSFORM ${paths} REPLACE "([][+.*^$?()|])" "\\\\\\1")  # A folder may be called c++.
    list(JOIN ${paths} "|" ${paths})
  endforeach()
  set(all "$<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>")
  set(all "$<FILTER:$<REMOVE_DUPLICATES:${all}>,EXCLUDE,^/usr/include$>")
  set(in_ours "$<FILTER:${all},INCLUDE,^(${here})(/|$)>")
  set(not_ours "$<FILTER:${all},EXCLUDE,^(${here})(/|$)>")
  set(${ours} "$<FILTER:${in_ours},EXCLUDE,^(${torch})$>" PARENT_SCOPE)
  set(${others} "${not_ours};$<FILTER:${in_ours},INCLUDE,^(${torch})$>" PARENT_SCOPE)
endfunction()

# The description of one kind of script (plain or train) as a JSON object, once for the build tree and once for the installed one, whose
# paths begin with @PREFIX@ (the folder two above the file).
function(paceline_describe_script target pch)
  paceline_link_closure(ours theirs ${target})
  set(built "")
  set(installed "")
  foreach(library IN LISTS ours)
    list(APPEND built "$<TARGET_FILE:${library}>")
    list(APPEND installed "@PREFIX@/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${library}>")
  endforeach()
  paceline_include_folders(own others ${target})
  paceline_json_array(built_json "${built}")
  paceline_json_array(installed_json "${installed}")
  paceline_json_array(theirs_json "${theirs}")
  paceline_json_array(includes_json "${others}")
  paceline_json_array(own_json "${own}")
  paceline_json_array(options_json "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_OPTIONS>>")
  paceline_json_array(defines_json "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_DEFINITIONS>>")
  set(rpaths "")
  if(pch)
    set(rpaths "${PACELINE_TORCH_RPATH}")
  endif()
  set(common "\"system_includes\": ${includes_json}, \"defines\": ${defines_json}, \"options\": ${options_json}, \"libraries\": ${theirs_json}, \"rpaths\": [\"${rpaths}\"]")
  set(paceline_built "{\"includes\": ${own_json}, \"archives\": ${built_json}, \"pch\": \"${pch}\", ${common}}" PARENT_SCOPE)
  set(paceline_installed "{\"includes\": [\"@PREFIX@/include\", \"@PREFIX@/include/paceline\"], \"archives\": ${installed_json}, \"pch\": \"\", ${common}}" PARENT_SCOPE)
endfunction()

# Whether clang++ can read this torch's headers as C++20 (1.13's: no). Asked once; costs as much as compiling a script.
function(paceline_probe_clang)
  if(DEFINED PACELINE_CLANG_READS_TORCH OR PACELINE_TORCH_VERSION VERSION_LESS 2)
    return()
  endif()
  find_program(PACELINE_CLANGXX clang++)
  set(reads OFF)
  if(PACELINE_CLANGXX)
    message(STATUS "Trying whether clang++ reads torch's headers (once)")
    file(WRITE "${PROJECT_BINARY_DIR}/scripts/probe.cc" "#include <torch/torch.h>\n")
    list(TRANSFORM PACELINE_TORCH_INCLUDES PREPEND "-isystem" OUTPUT_VARIABLE flags)
    execute_process(COMMAND "${PACELINE_CLANGXX}" -std=c++20 -fsyntax-only ${flags} "${PROJECT_BINARY_DIR}/scripts/probe.cc"
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed EQUAL 0)
      set(reads ON)
    endif()
  endif()
  set(PACELINE_CLANG_READS_TORCH ${reads} CACHE BOOL "clang++ compiles torch's headers as C++20")
endfunction()

# Flags of every script, and of all units here that include torch. -O1: half the compile time of -O2, and their own code is a small
# part of a training step.
set(PACELINE_SCRIPT_FLAGS -std=c++20 -O1 -g1 -fPIC -pthread)
if(PACELINE_SANITIZE)
  string(REPLACE "," ";-fsanitize=" sanitizers "-fsanitize=${PACELINE_SANITIZE}")  # A comma would end the $<JOIN:> below.
  list(APPEND PACELINE_SCRIPT_FLAGS ${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()
find_program(PACELINE_LLD ld.lld)

# paceline/train.h, precompiled once: a compilation with the same flags begins with `-include ${PACELINE_TRAIN_HEADER}`, since the
# compiler takes a precompiled header at the very beginning only.
set(PACELINE_TRAIN_HEADER "${PROJECT_BINARY_DIR}/scripts/pch/paceline_train.h")

# A target that precompiles it with `compiler`, whose headers end with .`suffix`.
function(paceline_precompile_train name compiler suffix)
  file(CONFIGURE OUTPUT "${PACELINE_TRAIN_HEADER}" CONTENT "#include <paceline/train.h>\n")
  set(output "${PACELINE_TRAIN_HEADER}.${suffix}")
  paceline_include_folders(ours others paceline_train_script)
  set(defines "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:paceline_train_script,INTERFACE_COMPILE_DEFINITIONS>>")
  # ccache must not take one for another that differs in comments only: the compiler finds a header in it by its whole text, else
  # includes it once more.
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -E env CCACHE_COMMENTS=1 ${CMAKE_CXX_COMPILER_LAUNCHER} ${compiler} ${PACELINE_SCRIPT_FLAGS} "$<$<BOOL:${defines}>:-D$<JOIN:${defines},;-D>>"
            "-I$<JOIN:${ours},;-I>" "-isystem$<JOIN:${others},;-isystem>"
            -x c++-header -c "${PACELINE_TRAIN_HEADER}" -o "${output}" -MD -MF "${output}.d" -MT "${output}"
    DEPENDS "${PACELINE_TRAIN_HEADER}" DEPFILE "${output}.d" JOB_POOL torch COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Precompiling paceline/train.h (about 30 s, once)")
  add_custom_target(${name} ALL DEPENDS "${output}")
endfunction()

# Compiles these sources of `target`, which include torch, with the flags of scripts: so that one precompiled header serves all.
function(paceline_compile_as_script target)
  # -Wno-pedantic: it would make another header of it. -fpch-preprocess: else ccache keeps nothing that takes one.
  set(flags ${PACELINE_SCRIPT_FLAGS} -UNDEBUG -Wno-pedantic -Winvalid-pch -include "${PACELINE_TRAIN_HEADER}" -fpch-preprocess)
  # Compilers do not name the headers that came with a precompiled one: a unit depends on that as a whole, or a change of a class
  # in it would leave units behind that know the former.
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}" SKIP_PRECOMPILE_HEADERS ON
                              OBJECT_DEPENDS "${PACELINE_TRAIN_HEADER}.gch")
  set_target_properties(${target} PROPERTIES JOB_POOL_COMPILE torch)
  add_dependencies(${target} paceline_train_header)
endfunction()

# Called after all folders: defines the targets and writes paceline-compile.json.
function(paceline_scripts)
  if(NOT TARGET paceline_actors)
    return()
  endif()
  paceline_script_target(paceline_script paceline paceline_actors)
  paceline_describe_script(paceline_script "")
  set(plain_built "${paceline_built}")
  set(plain_installed "${paceline_installed}")
  set(train_built "null")
  set(train_installed "null")
  set(train_compiler "${CMAKE_CXX_COMPILER}")
  if(TARGET paceline_train)
    paceline_script_target(paceline_train_script train paceline_train paceline_actors)
    paceline_probe_clang()
    if(PACELINE_CLANG_READS_TORCH)
      set(train_compiler "${PACELINE_CLANGXX}")
    endif()
    paceline_precompile_train(paceline_train_header "${CMAKE_CXX_COMPILER}" gch)
    if(NOT train_compiler STREQUAL CMAKE_CXX_COMPILER)
      paceline_precompile_train(paceline_train_header_of_scripts "${train_compiler}" pch)
    endif()
    cmake_path(GET PACELINE_TRAIN_HEADER PARENT_PATH pch)
    paceline_describe_script(paceline_train_script "${pch}")
    set(train_built "${paceline_built}")
    set(train_installed "${paceline_installed}")
  endif()
  set(link_flags "-Wl,--wrap=main" "-Wl,--build-id" "-Wl,--compress-debug-sections=zlib")
  if(PACELINE_LLD)
    list(APPEND link_flags -fuse-ld=lld)
  endif()
  paceline_json_array(flags_json "${PACELINE_SCRIPT_FLAGS}")
  paceline_json_array(link_json "${link_flags}")
  foreach(kind IN ITEMS built installed)
    set(file "${PROJECT_BINARY_DIR}/paceline-compile.json")
    if(kind STREQUAL "installed")
      set(file "${PROJECT_BINARY_DIR}/scripts/installed/paceline-compile.json")
    endif()
    file(GENERATE OUTPUT "${file}" CONTENT "{\"paceline\": \"${PROJECT_VERSION}\", \"torch\": \"${PACELINE_TORCH_VERSION}\",
 \"compiler\": \"${CMAKE_CXX_COMPILER}\", \"train_compiler\": \"${train_compiler}\",
 \"flags\": ${flags_json}, \"link_flags\": ${link_json},
 \"plain\": ${plain_${kind}},
 \"train\": ${train_${kind}}}
")
  endforeach()
  install(FILES "${PROJECT_BINARY_DIR}/scripts/installed/paceline-compile.json" DESTINATION ${CMAKE_INSTALL_LIBDIR}/paceline)
endfunction()
