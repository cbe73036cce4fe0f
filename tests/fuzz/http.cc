// Downloads from a server whose answers are the input: status, headers, body, redirections, and
// early ends.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/file.h"
#include "framework/data/files/download.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kConnections = 6;  // the first request and five redirections

// Listens on a Unix socket and gives each connection the next answer without reading the request.
class Server {
 public:
  explicit Server(std::vector<std::string> answers)
      : socket_(ScratchFolder() / "server"), answers_(std::move(answers)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    DT_CHECK(socket_.native().size() < sizeof(address.sun_path));
    socket_.native().copy(address.sun_path, sizeof(address.sun_path) - 1);
    ::unlink(socket_.c_str());
    listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    DT_CHECK(::bind(listening_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    DT_CHECK(::listen(listening_, kConnections) == 0);
    thread_ = std::thread([this] { Serve(); });
  }
  ~Server() {
    ::shutdown(listening_, SHUT_RDWR);  // ends accept
    thread_.join();
    for (const int connection : connections_) ::close(connection);
    ::close(listening_);
  }
  Server(const Server&) = delete;
  const fs::path& socket() const { return socket_; }

 private:
  void Serve() {
    while (connections_.size() < answers_.size()) {
      const int connection = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const std::string& answer = answers_[connections_.size()];
      // An answer is smaller than the socket's buffer, so it is sent at once, or the client has
      // gone.
      ::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::shutdown(connection, SHUT_WR);
      connections_.push_back(connection);
    }
    ::shutdown(listening_, SHUT_RDWR);  // refuses further ones
  }

  fs::path socket_;
  std::vector<std::string> answers_;
  int listening_;
  std::vector<int> connections_;
  std::thread thread_;
};

// TLS would test another project's parser, and loading all certificates is slow.
bool AsksForTls(std::string_view input) {
  std::string lower(input);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return lower.find("https") != std::string::npos;
}

// The first two bytes give the number of bytes present already and the file's size (0: unknown).
// The answers of the connections follow, all but the last one with their length in front.
bool Http(std::string_view input) {
  if (AsksForTls(input)) return false;
  InputReader in(input);
  const size_t here = in.Byte() % 8;
  const int64_t wanted = in.Byte() % 32;
  const std::string before = std::string("content!").substr(0, here);
  const fs::path part = WriteScratch("file.part", before);
  std::vector<std::string> answers;
  while (answers.size() + 1 < kConnections) answers.emplace_back(in.LongText());
  answers.emplace_back(in.Rest());
  const Server server(std::move(answers));
  DownloadResult result;
  const bool taken = Accepts(ExitCode::kData, [&] {
    result = Download("http://127.0.0.1/file", part, "file", {wanted, 2, 2, server.socket()});
  });
  const std::string after = ReadFile(part);
  Require(wanted == 0 || static_cast<int64_t>(std::max(after.size(), here)) <=
                             std::max(wanted, static_cast<int64_t>(here)),
          "the part is longer than the file");
  Require(taken && (result.whole || !result.message.empty()), "nothing says why it is not whole");
  return result.whole;
}

DTRAIN_FUZZ_TARGET("http", Http);

}  // namespace
}  // namespace dtrain::fuzz
