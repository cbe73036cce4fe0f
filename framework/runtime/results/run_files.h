// What readers take of a run folder's files.  The run may still go on, may have been killed, and may be of an older
// program: what is missing or damaged is left out and counted, never an error.
//
// For .cc files that know nlohmann/json.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

// nullopt where the key is missing or is no finite number.
std::optional<double> NumberIn(const nlohmann::json& object, const std::string& key);
// "" where the key is missing or is no string.
std::string TextIn(const nlohmann::json& object, const std::string& key);
// Those of its entries that are finite numbers; empty where the key is missing or is no list.
std::vector<double> NumbersIn(const nlohmann::json& object, const std::string& key);

// The steps in each window of a line of ranks.jsonl; older programs call them `steps`.
std::vector<double> OwnStepsIn(const nlohmann::json& line);

// To five significant digits: what a chart can show, in few characters.
double Shortened(double value);

// Every line of the file that is a JSON object, in order; the number of those that are none.  0 where there
// is no file.
int64_t ForEachLine(const std::filesystem::path& path,
                    const std::function<void(const nlohmann::json&)>& use);

// nullopt where there is no file, or it is no JSON object.
std::optional<nlohmann::json> ReadJsonObject(const std::filesystem::path& path);

}  // namespace dtrain
