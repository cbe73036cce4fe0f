# Where an installation has its parts: GNU's folders, and from the program's own one those in which it looks for configs and
# for the CUDA module.  Being relative, they hold wherever the installation is moved to.
include(GNUInstallDirs)
file(RELATIVE_PATH DTRAIN_SHARED_FOLDER ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/dtrain)
file(RELATIVE_PATH DTRAIN_LIBRARY_FOLDER ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/dtrain)
