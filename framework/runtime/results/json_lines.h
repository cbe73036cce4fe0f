// A file of JSON objects, one a line, each with a number "step": metrics.jsonl, gradients.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace dtrain {

// Each line is written at once, so a killed run loses none that it reported.
class JsonLines {
 public:
  // Begins the file anew, or with `resumed_step` keeps its lines up to that step and goes on after them (a torn last
  // line is dropped).  Throws RunFileError when it cannot be written.
  JsonLines(const std::filesystem::path& path, std::optional<int64_t> resumed_step);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // Throws RunFileError when the disk does not take the line.
  void Write(const std::string& line);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace dtrain
