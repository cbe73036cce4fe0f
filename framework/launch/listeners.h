// Closes the listening TCP sockets of a process of this user.
//
// mpirun listens for the daemons of other machines on every address of this one, and for its ranks on the loopback
// address. Any user can connect there, send three bytes of a longer greeting, and so stop mpirun for any time: it waits
// for the rest in its only loop (Open MPI 4.1, oob/tcp and PMIx's ptl).  Open MPI has no setting against that.  So the
// supervisor, once all daemons and ranks have connected, attaches a filter to these sockets that drops all packets
// (socket(7), SO_ATTACH_FILTER): no new connection is made.  Existing connections are not affected.
#pragma once

#include <sys/types.h>

#include <set>

namespace dtrain {

enum class Listeners {
  kOnEveryAddress,  // sockets that other machines can reach
  kAll,             // these, and sockets on the loopback address
};

// Returns the inode numbers of the process's sockets.
std::set<ino_t> SocketsOf(pid_t pid);

// Closes the process's listening sockets to new connections, except the sockets in `spared`.  A filter belongs to the
// socket and not to the process: closing an inherited socket would close it for its owner, too.  Returns how many
// sockets are closed now, by this call or an earlier one.  Returns 0 if the system forbids it (Linux before 5.6, a
// container's rules); the sockets stay open then.
int CloseListeners(pid_t pid, Listeners which, const std::set<ino_t>& spared);

}  // namespace dtrain
