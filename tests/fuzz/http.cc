// What a server answers to a download: status, headers, body, redirections, and how it breaks off.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/file.h"
#include "framework/data/files/download.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kConnections = 6;  // for the first request and each of five redirections

// Sockets whose servers have said all that they say and read nothing more.
class Server {
 public:
  ~Server() {
    for (const int end : ends_) ::close(end);
  }
  // The client's end.
  int Connect(std::string_view answer) {
    int ends[2];
    DT_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const ssize_t sent = ::send(ends[1], answer.data(), answer.size(), MSG_NOSIGNAL);
    DT_CHECK(sent == static_cast<ssize_t>(answer.size())) << sent;
    ::shutdown(ends[1], SHUT_WR);
    ends_.push_back(ends[1]);
    return ends[0];
  }
  int connections() const { return static_cast<int>(ends_.size()); }

 private:
  std::vector<int> ends_;
};

// TLS would be another program's parser, and costs the time of loading all certificates.
bool AsksForTls(std::string_view input) {
  std::string lower(input);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return lower.find("https") != std::string::npos;
}

// Two bytes: how many are here already, and how many it must have (0: not known).  Then the answers of the
// connections, all but the last one with their length in front.
bool Http(std::string_view input) {
  if (AsksForTls(input)) return false;
  InputReader in(input);
  const size_t here = in.Byte() % 8;
  const int64_t wanted = in.Byte() % 32;
  const std::string before = std::string("content!").substr(0, here);
  const fs::path part = WriteScratch("file.part", before);
  Server server;
  DownloadLimits limits{wanted, 2, 2};
  limits.connect = [&] {
    const bool last = server.connections() + 1 == kConnections;
    return server.Connect(last ? in.Rest() : in.LongText());
  };
  DownloadResult result;
  const bool taken = Accepts(
      ExitCode::kData, [&] { result = Download("http://127.0.0.1/file", part, "file", limits); });
  const std::string after = ReadFile(part);
  Require(server.connections() <= 2 * kConnections, "too many connections were made");
  Require(wanted == 0 || static_cast<int64_t>(std::max(after.size(), here)) <=
                             std::max(wanted, static_cast<int64_t>(here)),
          "the part is longer than the file");
  Require(taken && (result.whole || !result.message.empty()), "nothing says why it is not whole");
  return result.whole;
}

DTRAIN_FUZZ_TARGET("http", Http);

}  // namespace
}  // namespace dtrain::fuzz
