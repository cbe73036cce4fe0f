#include "framework/launch/hosts.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/core/text.h"
#include "framework/launch/child_program.h"

namespace dtrain {
namespace {

constexpr int kSlotsMax = 65536;
constexpr char kAgentVariable[] = "OMPI_MCA_plm_rsh_agent";
constexpr char kDefaultAgent[] = "ssh -o BatchMode=yes -o ConnectTimeout=10";
// Exit statuses of the check on a host; ssh uses 255 for its own errors.
constexpr int kNoProgram = 41, kNoFolder = 42, kNoOpenMpi = 43;

bool IsHostName(const std::string& text) {
  return !text.empty() && text[0] != '-' && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

HostSlots ParseHost(const std::string& part) {
  const size_t colon = part.find(':');
  HostSlots host{part.substr(0, colon), 1};
  const std::string number = colon == std::string::npos ? "1" : part.substr(colon + 1);
  const char* const end = number.data() + number.size();
  const auto [last, error] = std::from_chars(number.data(), end, host.slots);
  const bool is_number = error == std::errc() && last == end;
  if (IsHostName(host.host) && is_number && host.slots >= 1 && host.slots <= kSlotsMax) return host;
  throw UsageError(fmt::format("--hosts: '{}' is no host with its number of ranks", part),
                   "as in --hosts node1:4,node2:4");
}

// True if the host is this machine, which mpirun does not reach by ssh.
bool IsHere(const std::string& host) {
  const std::string this_host = HostName();
  return host == "localhost" || host == "127.0.0.1" || host == this_host ||
         this_host.starts_with(host + ".") || host.starts_with(this_host + ".");
}

// Returns the first entry of Open MPI's parameter plm_rsh_agent ("ssh : rsh"), or kDefaultAgent if it is not set.
std::string Agent() {
  const char* const list = std::getenv(kAgentVariable);
  const std::string agent = list == nullptr ? "" : std::string(list, std::strcspn(list, ":"));
  const size_t end = agent.find_last_not_of(' ');
  return end == std::string::npos ? kDefaultAgent : agent.substr(0, end + 1);
}

ProgramCommand Question(const std::string& host, const std::string& program) {
  const std::string folder = std::filesystem::current_path().string();
  std::string asked = fmt::format("test -x {} || exit {}; test -d {} || exit {}",
                                  ShellWord(program), kNoProgram, ShellWord(folder), kNoFolder);
  if (BundleFolder().empty()) {  // a bundle has its own orted
    asked += fmt::format("; command -v orted >/dev/null || exit {}", kNoOpenMpi);
  }
  return {.path = "/bin/sh",
          .arguments = {"sh", "-c", "exec " + Agent() + " \"$@\"", "sh", host, asked},
          .environment = OwnEnvironment(),
          .log = ""};
}

[[noreturn]] void Refuse(const std::string& host, const std::string& program, int code) {
  switch (code) {
    case kNoProgram:
      throw UsageError(
          fmt::format("host {} has no program {}", host, program),
          "install dtrain there at the same path, or in a folder that all hosts share");
    case kNoFolder:
      throw UsageError(
          fmt::format("host {} has no folder {}", host, std::filesystem::current_path().string()),
          "start dtrain in a folder that all hosts share");
    case kNoOpenMpi:
      throw UsageError(fmt::format("host {} has no Open MPI: orted is not in its PATH", host),
                       "install it there (Debian: openmpi-bin)");
    default:
      throw UsageError(
          fmt::format("no program can be started on host {}: {} ended with exit status {}", host,
                      Agent().substr(0, Agent().find(' ')), code),
          fmt::format("`ssh {} true` must work without a password; {} names another program", host,
                      kAgentVariable));
  }
}

}  // namespace

std::vector<HostSlots> ParseHosts(const std::string& text) {
  std::vector<HostSlots> hosts;
  std::istringstream parts(text.ends_with(',') || text.empty() ? text + "," : text);
  for (std::string part; std::getline(parts, part, ',');) {
    const HostSlots host = ParseHost(part);
    if (std::ranges::find(hosts, host.host, &HostSlots::host) != hosts.end()) {
      throw UsageError(fmt::format("--hosts: '{}' is named twice", host.host),
                       "name it once, with all its ranks");
    }
    hosts.push_back(host);
  }
  return hosts;
}

std::string TextOf(const std::vector<HostSlots>& hosts) {
  std::vector<std::string> parts;
  for (const HostSlots& host : hosts) parts.push_back(fmt::format("{}:{}", host.host, host.slots));
  return Join(parts, ",");
}

int SlotsOf(const std::vector<HostSlots>& hosts) {
  int slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  return slots;
}

void CheckHosts(const std::vector<HostSlots>& hosts, const std::string& program) {
  if (std::getenv("SLURM_JOB_ID") != nullptr) return;
  std::vector<std::pair<std::string, pid_t>> asked;
  for (const HostSlots& host : hosts) {
    if (!IsHere(host.host)) {
      asked.emplace_back(host.host, StartProgram(Question(host.host, program)));
    }
  }
  std::vector<int> codes;
  for (const auto& [host, pid] : asked) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    codes.push_back(CodeOfStatus(status));
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    if (codes[i] != 0) Refuse(asked[i].first, program, codes[i]);
  }
}

}  // namespace dtrain
