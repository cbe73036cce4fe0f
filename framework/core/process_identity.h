// ProcessIdentity names a process unambiguously.  A process number alone does not: it is reused, and it names another
// process on another machine, after a reboot and in another container.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dtrain {

struct ProcessIdentity {
  std::string host;
  std::string boot;        // /proc/sys/kernel/random/boot_id
  std::string namespaces;  // PID and time namespace, as /proc/self/ns names them
  int64_t pid = 0;
  uint64_t born = 0;  // start time, in clock ticks since the boot
};

// Returns none if the system does not provide all of it: without /proc, or with that of another PID namespace.
std::optional<ProcessIdentity> IdentityOfThisProcess();

// Convert to one line of JSON and back; ParseIdentity returns none if the text is incomplete.
std::string ToText(const ProcessIdentity& process);
std::optional<ProcessIdentity> ParseIdentity(const std::string& text);

// True only if it is certain: this process runs on the same host, in the same boot and the same namespaces, and the
// process does not exist there.  A zombie counts as ended.
bool HasEnded(const ProcessIdentity& process);

}  // namespace dtrain
