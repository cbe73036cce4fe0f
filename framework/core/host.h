// This machine's name and this program's place, as the system tells them.
#pragma once

#include <filesystem>
#include <string>

namespace dtrain {

std::string HostName();

// Of the program that runs; empty where the system does not tell.
std::filesystem::path ProgramFolder();

}  // namespace dtrain
