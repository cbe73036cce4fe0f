// Reads a JSON object strictly: the caller asks for every key, and keys that it did not ask for are errors.
//
// The .cc files that read dtrain's own JSON (plan, profile) use it.  Messages name the source and the path of the
// value: "plan.json: buckets[2].begin: not an integer".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

namespace dtrain {

// Throws ConfigError with `source` and the byte position if the text is not JSON.
nlohmann::json ParseJson(std::string_view text, const std::string& source);

class JsonFields {
 public:
  // `where` is the source and path so far.  `object` is borrowed.
  JsonFields(const nlohmann::json& object, std::string where);

  bool Has(const std::string& key) const;
  std::string String(const std::string& key);
  int64_t Count(const std::string& key);   // an integer, from 0 to 1e15
  int SmallCount(const std::string& key);  // one that fits an int
  // Reads the optional key "schema", which a file may lack; throws ConfigError if it is above `newest`.
  void Schema(int newest);
  double Amount(const std::string& key);  // a number, finite and >= 0
  const nlohmann::json& Array(const std::string& key);
  const nlohmann::json& Object(const std::string& key);
  void RejectOthers() const;  // throws ConfigError for an unknown key

  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& Get(const std::string& key);

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace dtrain
