// Information about this process: where it runs, and which source it was built from.
#pragma once

#include <filesystem>
#include <string>

namespace dtrain {

std::string HostName();  // the machine's name

// Returns the running executable.  Throws std::filesystem::filesystem_error if the system does not reveal it.
std::filesystem::path ProgramFile();
std::filesystem::path ProgramFolder();  // its folder; empty if unknown

// Returns the bundle (tools/bundle.sh) that contains this program; empty if there is none.
std::filesystem::path BundleFolder();

// Return the folders into which `cmake --install` puts the configs and the CUDA module: share/dtrain and lib/dtrain,
// relative to bin.  They may be missing.
std::filesystem::path SharedFolder();
std::filesystem::path LibraryFolder();

// In a bundle, makes Open MPI take its plugins and texts from the bundle too, whatever the environment says, since they
// must be of the same build as its libraries.  Sets environment variables: call it before MPI and before other threads
// start.
void LocateOwnMpi();

std::string SourceRevision();  // git's short commit, with "+" after uncommitted changes; "unknown"
std::string Version();         // "0.1.0"
// Returns "0.1.0 (1a2b3c4)", or only the version if the revision is unknown, as in an unpacked archive.
std::string VersionAndRevision();

}  // namespace dtrain
