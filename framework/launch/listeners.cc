#include "framework/launch/listeners.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "framework/core/descriptor.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// Returns the process's descriptors that are sockets, with their inode numbers.
std::map<int, ino_t> SocketDescriptors(pid_t pid) {
  constexpr std::string_view kSocket = "socket:[";  // 12345]
  std::map<int, ino_t> sockets;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
    const std::string what = fs::read_symlink(entry.path(), error).string();
    if (!what.starts_with(kSocket)) continue;
    sockets[std::atoi(entry.path().filename().c_str())] =
        std::strtoull(what.c_str() + kSocket.size(), nullptr, 10);
  }
  return sockets;
}

bool IsListening(int socket) {
  int listens = 0;
  socklen_t size = sizeof(listens);
  return ::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 1;
}

// True if a socket is bound to all addresses.
bool IsOnEveryAddress(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == INADDR_ANY;
  }
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool IsDoor(int socket, Listeners which) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return false;
  return IsListening(socket) && (which == Listeners::kAll || IsOnEveryAddress(address));
}

bool DropWhatComes(int socket) {
  sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};  // keep 0 bytes of a packet
  const sock_fprog program = {1, nothing};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

}  // namespace

std::set<ino_t> SocketsOf(pid_t pid) {
  std::set<ino_t> inodes;
  for (const auto& [descriptor, inode] : SocketDescriptors(pid)) inodes.insert(inode);
  return inodes;
}

int CloseListeners(pid_t pid, Listeners which, const std::set<ino_t>& spared) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) return 0;
  int closed = 0;
  for (const auto& [number, inode] : SocketDescriptors(pid)) {
    if (spared.contains(inode)) continue;
    const Descriptor socket(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    if (socket.get() < 0 || !IsDoor(socket.get(), which)) continue;
    closed += DropWhatComes(socket.get()) ? 1 : 0;
  }
  return closed;
}

}  // namespace dtrain
