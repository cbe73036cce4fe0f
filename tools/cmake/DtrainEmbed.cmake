# dtrain_embed(target header variable file [variable file]...): compiles each file into the target, as a
# std::string_view in the header's namespace dtrain::assets.
#
#   cmake -DOUTPUT=x.cc -DHEADER=x.h -DASSETS="kPage;page.html" -P DtrainEmbed.cmake       (called by the build)
function(dtrain_embed target header)
  set(output ${CMAKE_BINARY_DIR}/embedded/${target}.cc)
  set(files)
  set(assets ${ARGN})
  while(assets)
    list(POP_FRONT assets variable file)
    list(APPEND files ${file})
  endwhile()
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} "-DASSETS=${ARGN}"
      -P ${CMAKE_SOURCE_DIR}/tools/cmake/DtrainEmbed.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/tools/cmake/DtrainEmbed.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(source "#include \"${HEADER}\"\n\nnamespace dtrain::assets {\n")
  while(ASSETS)
    list(POP_FRONT ASSETS variable file)
    file(READ ${file} text)
    string(APPEND source "const std::string_view ${variable} = R\"embedded(${text})embedded\";\n")
  endwhile()
  file(WRITE ${OUTPUT} "${source}}  // namespace dtrain::assets\n")
endif()
