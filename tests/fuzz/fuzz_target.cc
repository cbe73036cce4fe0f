#include "tests/fuzz/fuzz_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "framework/core/check.h"
#include "framework/core/log.h"

namespace dtrain::fuzz {
namespace fs = std::filesystem;
namespace {

std::map<std::string, Run>& MutableTargets() {
  static std::map<std::string, Run> targets;
  return targets;
}

// The scratch folder.  It is in memory if the system has such a file system.
class Scratch {
 public:
  Scratch() {
    std::error_code absent;
    const fs::path memory = "/dev/shm";
    const fs::path parent = fs::is_directory(memory, absent) ? memory : fs::temp_directory_path();
    folder_ = parent / fmt::format("dtrain_fuzz_{}", ::getpid());
    fs::create_directories(folder_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

}  // namespace

bool AddTarget(const char* name, Run run) {
  log::SetLevel(log::Level::kError);  // warnings about the input would fill the terminal
  return MutableTargets().emplace(name, run).second;
}

const std::map<std::string, Run>& Targets() { return MutableTargets(); }

void Require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

fs::path ScratchFolder() {
  static const Scratch scratch;
  return scratch.folder();
}

fs::path WriteScratch(const std::string& name, std::string_view content) {
  fs::path path = ScratchFolder() / name;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  DT_CHECK(fd >= 0) << path;
  const ssize_t written = ::write(fd, content.data(), content.size());
  ::close(fd);
  DT_CHECK(written == static_cast<ssize_t>(content.size())) << path;
  return path;
}

std::string_view InputReader::Take(size_t bytes) {
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(taken.size());
  return taken;
}

uint8_t InputReader::Byte() {
  const std::string_view byte = Take(1);
  return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
}

int64_t InputReader::Number() {
  uint64_t number = 0;
  for (int shift = 0; shift < 64; shift += 8) number |= uint64_t{Byte()} << shift;
  return static_cast<int64_t>(number);
}

std::string_view InputReader::Text() { return Take(Byte()); }

std::string_view InputReader::LongText() {
  const size_t low = Byte();
  return Take(low + (size_t{Byte()} << 8));
}

std::string_view InputReader::Rest() { return Take(rest_.size()); }

}  // namespace dtrain::fuzz

// libFuzzer calls this.  Its programs hold one target each.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  static const dtrain::fuzz::Run run = [] {
    DT_CHECK(dtrain::fuzz::Targets().size() == 1) << dtrain::fuzz::Targets().size();
    return dtrain::fuzz::Targets().begin()->second;
  }();
  run({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
