// Readers for the files of a run folder.  The run may still be going on, or may have been killed.  Missing or damaged
// content is therefore left out and counted, and is never an error.
//
// To be included only by .cc files that use nlohmann/json.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

// Returns nullopt if the key is missing or its value is no finite number.
std::optional<double> NumberIn(const nlohmann::json& object, const std::string& key);
// Returns "" if the key is missing or its value is no string.
std::string TextIn(const nlohmann::json& object, const std::string& key);
// Returns the finite numbers in the list; empty if the key is missing or its value is no list.
std::vector<double> NumbersIn(const nlohmann::json& object, const std::string& key);

// Rounds to five significant digits: enough for a chart, and short in JSON.
double Shortened(double value);

// Calls `use` for every line of the file that is a JSON object, in order.  Returns the number of other lines, without
// an incomplete last one; 0 if there is no file.
int64_t ForEachLine(const std::filesystem::path& path,
                    const std::function<void(const nlohmann::json&)>& use);

// Returns nullopt if there is no file, or if its content is no JSON object.
std::optional<nlohmann::json> ReadJsonObject(const std::filesystem::path& path);

}  // namespace dtrain
