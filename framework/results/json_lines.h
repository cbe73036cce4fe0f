// JsonLines: a file of JSON objects, one a line, each with a number "step" (metrics.jsonl, gradients.jsonl,
// ranks.jsonl).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace dtrain {

// Each line is written at once, so a killed run loses none that it reported.
class JsonLines {
 public:
  // Starts an empty file; with `resumed_step` keeps the lines up to that step and appends to them (an incomplete last
  // line is dropped).  Throws RunFileError if the file cannot be written.
  JsonLines(const std::filesystem::path& path, std::optional<int64_t> resumed_step);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // Throws RunFileError if the disk does not take the line.
  void Write(const std::string& line);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace dtrain
