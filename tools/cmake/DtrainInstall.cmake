# What `cmake --install` puts where, and what `cpack -G DEB` makes of it.
#
# In GNU's folders: bin/dtrain, lib/dtrain (the CUDA module), share/dtrain (configs, batch scripts),
# share/doc/dtrain, share/man and the completions of bash and zsh.
set(doc ${CMAKE_INSTALL_DOCDIR})
set(generated ${CMAKE_BINARY_DIR}/installed)

install(TARGETS dtrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(DTRAIN_HAS_CUDA)
  install(TARGETS dtrain_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/dtrain)
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/dtrain)

# The batch scripts start the program of a build in this tree; installed they take that of PATH.
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/launch/slurm/*.sbatch)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME)
  file(READ ${script} text)
  string(REPLACE "(build/release/dtrain train" "(dtrain train" text "${text}")
  file(CONFIGURE OUTPUT ${generated}/slurm/${name} CONTENT "${text}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
endforeach()
install(DIRECTORY ${generated}/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/dtrain/launch)

install(FILES README.md DESTINATION ${doc})
install(FILES LICENSE DESTINATION ${doc} RENAME copyright)

# The program knows its commands best: the man page is what it prints.
set(manual ${generated}/dtrain.1.gz)
add_custom_command(OUTPUT ${manual}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
  COMMAND sh -c "'$<TARGET_FILE:dtrain>' manual | gzip -9n >'${manual}'"
  DEPENDS dtrain VERBATIM)
add_custom_target(dtrain_manual ALL DEPENDS ${manual})
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES tools/completion/dtrain.bash RENAME dtrain
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES tools/completion/_dtrain DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)

# Debian's package: build/release/dtrain_VERSION_amd64.deb by `cpack --config build/release/CPackConfig.cmake`.  Its
# dependencies are those of the program; CUDA's libraries are not Debian's, and are looked for at run time.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(CPACK_PACKAGE_CONTACT "dtrain developers <dtrain@localhost>")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS openssh-client)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed training with any published gradient-exchange protocol")
set(CPACK_PACKAGE_DESCRIPTION "dtrain trains a model on one core, one GPU or a cluster. How gradients are exchanged is one key
of a YAML file: all-reduce, parameter servers, stale synchronous groups and
more, with or without compression. The same protocols run in a simulator.")
include(CPack)
