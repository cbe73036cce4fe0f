// What this process knows of itself: where it runs, and which source it was built from.
#pragma once

#include <filesystem>
#include <string>

namespace dtrain {

std::string HostName();  // of the machine

// The program that runs.  Throws std::filesystem::filesystem_error where the system does not tell.
std::filesystem::path ProgramFile();
std::filesystem::path ProgramFolder();  // of it; empty where the system does not tell

// The bundle (tools/bundle.sh) whose program this is; empty where the program lies in none.
std::filesystem::path BundleFolder();

// Where `cmake --install` puts configs and the CUDA module of this program: share/dtrain and lib/dtrain, seen from
// bin.  They need not be there.
std::filesystem::path SharedFolder();
std::filesystem::path LibraryFolder();

// In a bundle: Open MPI, whose libraries the program has from there, takes its plugins and texts from
// there too, whatever the environment said before, since both must be of one build.  Sets variables
// of the environment: call it before MPI and before other threads start.
void LocateOwnMpi();

std::string SourceRevision();  // git's short commit, with "+" after uncommitted changes; "unknown"
std::string Version();         // "0.1.0"
// "0.1.0 (1a2b3c4)"; the version alone where no revision is known, as in an unpacked archive.
std::string VersionAndRevision();

}  // namespace dtrain
