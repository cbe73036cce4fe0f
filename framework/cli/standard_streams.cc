#include "framework/cli/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "framework/core/error.h"
#include "framework/launch/world.h"

namespace dtrain {
namespace {

// True if the reader of a pipe, such as `head`, has closed it.
bool ReaderLeft() {
  pollfd out = {STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

}  // namespace

void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() uses the lowest free number, which is `fd`.
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

void OutliveReaders() { std::signal(SIGPIPE, SIG_IGN); }

int FinishStdout(int code) {
  errno = 0;
  std::cout.flush();
  const bool written = std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || code != 0 || ReaderLeft()) return code;
  const std::string why = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  const RunFileError error("cannot write to standard output" + why);
  TellError(error);
  return static_cast<int>(error.code());
}

}  // namespace dtrain
