# The folders of an installation: GNU's, and the paths from the program's folder to the configs and to the CUDA module.
# They are relative, so that the installation can be moved.
include(GNUInstallDirs)
file(RELATIVE_PATH DTRAIN_SHARED_FOLDER ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/dtrain)
file(RELATIVE_PATH DTRAIN_LIBRARY_FOLDER ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/dtrain)
