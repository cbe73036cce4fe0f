// Fuzz targets: each hands bytes to one parser and checks what it makes of them.
//
// A parser may do two things with an input: take it, or refuse it with the project's own error for
// that kind of file.  Any other exception, a failed DT_CHECK, a crash, a leak or a hang is a defect.
// What was taken must also be the same after it has been written and read again, where there is a
// writer; a target says so with Require.
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

// True where the parser took the input.
using Run = bool (*)(std::string_view input);

bool AddTarget(const char* name, Run run);
const std::map<std::string, Run>& Targets();

// Throws what no parser may throw, unless `condition` holds.
void Require(bool condition, const std::string& what);

// What `parse` does: true when it ends, false when it refuses with an error of this exit code.
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

// What `read` makes of what was written for it; refusing that is a defect.
template <class Read>
auto ReadAgain(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    Require(false, "what was written is refused: " + std::string(error.what()));
    throw;
  }
}

// A folder in memory for parsers that read files; it is removed when the process ends.
std::filesystem::path ScratchFolder();

// Replaces the content of a file in it and returns its path.  Nothing is flushed to a disk.
std::filesystem::path WriteScratch(const std::string& name, std::string_view content);

// Takes the input apart from its start, for targets that need more than one file or number.
// Behind its end there are zeros and empty texts.
class InputReader {
 public:
  explicit InputReader(std::string_view input) : rest_(input) {}

  bool AtEnd() const { return rest_.empty(); }
  uint8_t Byte();
  int64_t Number();             // eight bytes, the lowest first
  std::string_view Text();      // as long as its first byte says
  std::string_view LongText();  // as long as its first two bytes say, the lower one first
  std::string_view Rest();      // all that is left

 private:
  std::string_view Take(size_t bytes);
  std::string_view rest_;
};

}  // namespace dtrain::fuzz

#define DTRAIN_FUZZ_TARGET(name, run) \
  [[maybe_unused]] static const bool run##_added = ::dtrain::fuzz::AddTarget(name, run)
