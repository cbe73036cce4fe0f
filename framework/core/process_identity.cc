#include "framework/core/process_identity.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "framework/core/process.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr char kBootFile[] = "/proc/sys/kernel/random/boot_id";

struct ProcessStat {
  char state = '\0';
  uint64_t born = 0;
};

// Reads /proc/PID/stat, proc(5): "pid (name) state ...", with the start time in field 22.  The name may hold blanks and
// brackets.
std::optional<ProcessStat> StatOf(int64_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.born;
  if (!fields) return std::nullopt;
  return stat;
}

std::string LinkAt(const char* path) {
  std::error_code error;
  return fs::read_symlink(path, error).string();
}

std::string FirstLine(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::optional<ProcessIdentity> IdentityOfThisProcess() {
  const int64_t pid = ::getpid();
  // The /proc of another PID namespace describes other processes under these numbers.
  if (LinkAt("/proc/self") != std::to_string(pid)) return std::nullopt;
  const std::optional<ProcessStat> stat = StatOf(pid);
  const std::string numbers = LinkAt("/proc/self/ns/pid");
  const std::string boot = FirstLine(kBootFile);
  if (!stat || numbers.empty() || boot.empty()) return std::nullopt;
  return ProcessIdentity{.host = HostName(),
                         .boot = boot,
                         .namespaces = numbers + " " + LinkAt("/proc/self/ns/time"),
                         .pid = pid,
                         .born = stat->born};
}

std::string ToText(const ProcessIdentity& process) {
  const nlohmann::ordered_json json = {{"host", process.host},
                                       {"boot", process.boot},
                                       {"namespaces", process.namespaces},
                                       {"pid", process.pid},
                                       {"born", process.born}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<ProcessIdentity> ParseIdentity(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    return ProcessIdentity{json.at("host"), json.at("boot"), json.at("namespaces"), json.at("pid"),
                           json.at("born")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

bool HasEnded(const ProcessIdentity& process) {
  const std::optional<ProcessIdentity> self = IdentityOfThisProcess();
  const bool comparable = self && self->host == process.host && self->boot == process.boot &&
                          self->namespaces == process.namespaces;
  if (!comparable || process.pid <= 0) return false;
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return true;
  const std::optional<ProcessStat> stat = StatOf(process.pid);
  if (!stat) return false;  // unknown
  return stat->born != process.born || stat->state == 'Z' || stat->state == 'X';
}

}  // namespace dtrain
