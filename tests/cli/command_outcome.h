// Runs a command of the program in this process.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "framework/cli/command.h"

namespace dtrain {

struct CommandOutcome {
  int code = 0;
  std::string out;
  std::string err;
};

// Runs `dtrain ARGUMENTS...`.
inline CommandOutcome RunCommand(const std::vector<std::string>& arguments) {
  ::setenv("OMP_WAIT_POLICY", "passive", 0);  // or a command may start the process anew to set it
  std::vector<std::string> words = {"dtrain"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = RunCommandLine(static_cast<int>(argv.size()), argv.data());
  std::string out = testing::internal::GetCapturedStdout();
  return {code, std::move(out), testing::internal::GetCapturedStderr()};
}

inline std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> WordsOf(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Returns the JSON of an output that is indented by two blanks and ends with one newline.
inline nlohmann::ordered_json IndentedJson(const std::string& out) {
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(out);
  EXPECT_EQ(out, json.dump(2) + "\n");
  return json;
}

}  // namespace dtrain
