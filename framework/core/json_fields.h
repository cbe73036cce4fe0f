// Reads a JSON object strictly: every key is asked for once, and unknown ones are mistakes.
//
// For the .cc files that read our own JSON (plan, profile).  Messages name the source and the path
// of the value: "plan.json: buckets[2].begin: not an integer".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

namespace dtrain {

// Throws ConfigError, naming `source` and where the text goes wrong.
nlohmann::json ParseJson(std::string_view text, const std::string& source);

class JsonFields {
 public:
  // `where` is the source and path so far; both arguments must outlive this.
  JsonFields(const nlohmann::json& object, std::string where);

  bool Has(const std::string& key) const;
  std::string String(const std::string& key);
  int64_t Count(const std::string& key);   // an integer, from 0 to 1e15
  int SmallCount(const std::string& key);  // that fits an int
  // The version of the keys, where the text says it, as files of older programs do not; throws
  // ConfigError where that is newer than `newest`.
  void Schema(int newest);
  double Amount(const std::string& key);  // a number, finite and >= 0
  const nlohmann::json& Array(const std::string& key);
  const nlohmann::json& Object(const std::string& key);
  void RejectOthers() const;  // unknown keys

  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& Get(const std::string& key);

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace dtrain
