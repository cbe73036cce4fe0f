// What this process knows of itself: where it runs, and which source it was built from.
#pragma once

#include <filesystem>
#include <string>

namespace dtrain {

std::string HostName();  // of the machine

// The program that runs.  Throws std::filesystem::filesystem_error where the system does not tell.
std::filesystem::path ProgramFile();
std::filesystem::path ProgramFolder();  // of it; empty where the system does not tell

std::string SourceRevision();  // git's short commit, with "+" after uncommitted changes; "unknown"
std::string Version();         // "0.1.0"

}  // namespace dtrain
