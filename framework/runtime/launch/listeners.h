// Doors of a process of this user: its sockets that wait for TCP connections.
//
// mpirun waits for daemons of other machines on every address of this one, and for its ranks on the loopback address.
// Whoever connects to one of these and says three bytes of a longer greeting stops mpirun for as long as he likes:
// it reads the rest in its only loop (Open MPI 4.1, oob/tcp and PMIx's ptl).  Open MPI has no setting for that.  So
// the supervisor, once nobody else has to come in, gives these sockets a filter that drops what comes (socket(7),
// SO_ATTACH_FILTER): a stranger's connection is never made.  Connections that are there already go on.
#pragma once

#include <sys/types.h>

#include <set>

namespace dtrain {

enum class Listeners {
  kOnEveryAddress,  // those that other machines can reach
  kAll,             // and those on the loopback address
};

// Returns the inode numbers of the process's sockets.
std::set<ino_t> SocketsOf(pid_t pid);

// Closes them to new connections, but for the sockets in `spared`.  A filter belongs to the socket and not to the
// process: one that was inherited would be closed for its owner, too.  Returns how many are closed now, by this call or
// an earlier one; 0 where the system does not let this process do it (Linux before 5.6, a container's rules): they stay
// open then.
int CloseListeners(pid_t pid, Listeners which, const std::set<ino_t>& spared);

}  // namespace dtrain
