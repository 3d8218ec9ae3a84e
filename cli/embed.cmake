# cmake -DFILES=a;b -DOUT=x.cc -DHEADER=cli/report/assets.h -DNAMESPACE=paceline::report -P embed.cmake: the function asset() of
# that header, which holds the files.
set(source "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nstd::string_view asset(std::string_view name) {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  if(text MATCHES "\\)PACELINE\"")
    message(FATAL_ERROR "${file} holds the end of a raw string, )PACELINE\"")
  endif()
  string(APPEND source "  if (name == \"${name}\")\n    return R\"PACELINE(${text})PACELINE\";\n")
endforeach()
string(APPEND source "  return {};\n}\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUT}" "${source}")
