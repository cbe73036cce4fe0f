// Fuzz targets: each passes bytes to one parser and checks the result.
//
// A parser may either accept an input or refuse it with the project's own error for that kind of
// file.  Any other exception, a failed DT_CHECK, a crash, a leak or a hang is a defect.  If there
// is a writer, what was accepted must also be the same after it was written and read again; a
// target checks that with Require.
//
//   bool Plan(std::string_view input) {
//     return Accepts(ExitCode::kUsage, [&] { ... });
//   }
//   DTRAIN_FUZZ_TARGET("plan", Plan);
//
// libFuzzer's programs (fuzz_plan, preset `fuzz`) hold one target each, fuzz_tests holds all.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "framework/core/error.h"

namespace dtrain::fuzz {

// A target.  Returns true if the parser accepted the input.
using Run = bool (*)(std::string_view input);

bool AddTarget(const char* name, Run run);
const std::map<std::string, Run>& Targets();

// Throws an error that no parser may throw, unless `condition` holds.
void Require(bool condition, const std::string& what);

// Runs `parse`.  Returns true if it ends, and false if it refuses the input with this exit code.
template <class Parse>
bool Accepts(ExitCode refusal, const Parse& parse) {
  try {
    parse();
    return true;
  } catch (const Error& error) {
    Require(error.code() == refusal,
            "the input was refused with the wrong exit code: " + std::string(error.what()));
    Require(*error.what() != '\0', "the input was refused without a word");
    return false;
  }
}

// Returns the result of `read`, which reads what the target has written; a refusal is a defect.
template <class Read>
auto ReadAgain(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    Require(false, "what was written is refused: " + std::string(error.what()));
    throw;
  }
}

// Returns a folder for parsers that read files, in memory if possible.  It is removed when the
// process ends.
std::filesystem::path ScratchFolder();

// Writes a file in the scratch folder and returns its path.  Nothing is flushed to disk.
std::filesystem::path WriteScratch(const std::string& name, std::string_view content);

// Takes the input apart from its start, for targets that need more than one file or number.  Past
// the end it returns zeros and empty texts.
class InputReader {
 public:
  explicit InputReader(std::string_view input) : rest_(input) {}

  bool AtEnd() const { return rest_.empty(); }
  uint8_t Byte();
  int64_t Number();             // eight bytes, little-endian
  std::string_view Text();      // its first byte gives the length
  std::string_view LongText();  // its first two bytes, little-endian, give the length
  std::string_view Rest();      // everything left

 private:
  std::string_view Take(size_t bytes);
  std::string_view rest_;
};

}  // namespace dtrain::fuzz

#define DTRAIN_FUZZ_TARGET(name, run) \
  [[maybe_unused]] static const bool run##_added = ::dtrain::fuzz::AddTarget(name, run)
