# Rules of `cmake --install`, and the Debian package that `cpack -G DEB` makes.
#
# They use GNU's folders: bin/dtrain, lib/dtrain (the CUDA module), share/dtrain (configs, batch scripts),
# share/doc/dtrain, share/man and the completions of bash and zsh.
set(doc ${CMAKE_INSTALL_DOCDIR})
set(generated ${CMAKE_BINARY_DIR}/installed)

install(TARGETS dtrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(DTRAIN_HAS_CUDA)
  install(TARGETS dtrain_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/dtrain)
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/dtrain FILES_MATCHING PATTERN "*.yaml" PATTERN "costs/*.json")

# The batch scripts start the program of a build in this tree; installed ones use the program in PATH.
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/launch/slurm/*.sbatch)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME)
  file(READ ${script} text)
  string(REPLACE "(build/release/dtrain train" "(dtrain train" text "${text}")
  file(CONFIGURE OUTPUT ${generated}/slurm/${name} CONTENT "${text}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
endforeach()
install(DIRECTORY ${generated}/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/dtrain/launch
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# Their folders are those of the source tree, because they refer to each other by path.
install(FILES LICENSE DESTINATION ${doc})
file(GLOB documents CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} *.md configs/*.md launch/*.md layers/*.md tools/*/README.md
  framework/README.md framework/*/README.md framework/*/*/README.md tests/*/README.md)
foreach(document ${documents})
  get_filename_component(folder ${document} DIRECTORY)
  install(FILES ${document} DESTINATION ${doc}/${folder})
endforeach()

# Debian's files: the licence by reference, and the changelog.
file(CONFIGURE OUTPUT ${generated}/copyright @ONLY CONTENT
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: dtrain

Files: *
Copyright: 2026 the authors of dtrain
License: Apache-2.0
Comment: The program holds Chart.js for the pages of dtrain report, Copyright its contributors, under the MIT
 licence, whose notice stands in the script.

License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
set(changes ${generated}/changelog.gz)
add_custom_command(OUTPUT ${changes}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
  COMMAND sh -c "gzip -9n <'${CMAKE_SOURCE_DIR}/CHANGELOG.md' >'${changes}'"
  DEPENDS ${CMAKE_SOURCE_DIR}/CHANGELOG.md VERBATIM)
install(FILES ${generated}/copyright ${changes} DESTINATION ${doc})

# The program prints its man page.
set(manual ${generated}/dtrain.1.gz)
add_custom_command(OUTPUT ${manual}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
  COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0
    sh -c "'$<TARGET_FILE:dtrain>' manual >'${generated}/dtrain.1' && gzip -9nf '${generated}/dtrain.1'"
  DEPENDS dtrain VERBATIM)
add_custom_target(dtrain_manual ALL DEPENDS ${manual} ${changes})
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES tools/completion/dtrain.bash RENAME dtrain
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES tools/completion/_dtrain DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)

# Debian's package: build/release/dtrain_VERSION_amd64.deb by `cpack --config build/release/CPackConfig.cmake`.  Its
# dependencies are those of the program; CUDA's libraries are not in Debian, and are searched for at run time.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(DTRAIN_MAINTAINER "dtrain developers <dtrain@localhost>" CACHE STRING "Maintainer of the package: name and address")
set(CPACK_PACKAGE_CONTACT ${DTRAIN_MAINTAINER})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS openssh-client)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed training with any published gradient-exchange protocol")
set(CPACK_PACKAGE_DESCRIPTION "dtrain trains a model on one core, one GPU or a cluster. How gradients are
exchanged is one key of a YAML file: all-reduce, parameter servers, stale
synchronous groups and more, with or without compression. The same protocols
run in a simulator.")
# The licence is named in `copyright`.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/tools/cmake/DebianFiles.cmake)
include(CPack)
