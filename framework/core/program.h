// What this program knows of itself: where it runs, and which source it was built from.
#pragma once

#include <filesystem>
#include <string>

namespace dtrain {

std::string HostName();  // of the machine

// Of the program that runs; empty where the system does not tell.
std::filesystem::path ProgramFolder();

std::string SourceRevision();  // git's short commit, with "+" after uncommitted changes; "unknown"
std::string Version();         // "0.1.0"

}  // namespace dtrain
