#include "tests/data/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {
namespace {

bool SendAll(int connection, const std::string& data) {
  size_t sent = 0;
  while (sent < data.size()) {
    const ssize_t n = ::send(connection, data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

std::string ReadRequest(int connection) {
  std::string request;
  char buffer[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t n = ::recv(connection, buffer, sizeof buffer, 0);
    if (n <= 0) return "";
    request.append(buffer, static_cast<size_t>(n));
  }
  return request;
}

// Returns the text between `begin` and `end`; "" if either is absent.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  const size_t from = at + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

}  // namespace

HttpServer::HttpServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener_, generic, size), 0);
  EXPECT_EQ(::listen(listener_, 8), 0);
  EXPECT_EQ(::getsockname(listener_, generic, &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

HttpServer::~HttpServer() {
  stop_ = true;
  ::shutdown(listener_, SHUT_RDWR);  // wakes accept
  thread_.join();
  ::close(listener_);
}

void HttpServer::Serve(const std::string& path, Page page) {
  const std::lock_guard lock(mutex_);
  pages_[path] = std::move(page);
}

std::string HttpServer::Url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

std::vector<std::string> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::Run() {
  while (!stop_) {
    const int connection = ::accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    Answer(connection);
    ::close(connection);
  }
}

void HttpServer::Answer(int connection) {
  const std::string request = ReadRequest(connection);
  if (request.empty()) return;
  const std::string path = Between(request, "GET ", " ");
  const std::string range = Between(request, "Range: ", "\r\n");
  Page page;
  page.status = 404;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back("GET " + path + (range.empty() ? "" : " " + range));
    const auto it = pages_.find(path);
    if (it != pages_.end()) {
      page = it->second;
      if (it->second.faults-- <= 0) page.dies_after = page.stalls_after = -1;
    }
  }
  const std::string from = Between(range, "bytes=", "-");
  SendPage(connection, page, from.empty() || page.ignores_range ? 0 : std::stoll(from));
}

void HttpServer::SendPage(int connection, Page page, int64_t from) {
  if (from > 0 && from >= static_cast<int64_t>(page.content.size())) page.status = 416;
  const std::string body = page.status == 200 ? page.content.substr(from) : "";
  const int64_t claimed = page.claimed_length >= 0 ? page.claimed_length : body.size();
  std::string head = fmt::format("HTTP/1.1 {} -\r\nContent-Length: {}\r\nConnection: close\r\n",
                                 from > 0 && page.status == 200 ? 206 : page.status, claimed);
  if (from > 0) {
    head += fmt::format("Content-Range: bytes {}-{}/{}\r\n", from, page.content.size() - 1,
                        page.content.size());
  }
  if (!SendAll(connection, head + "\r\n")) return;
  const int64_t cut = std::max(page.dies_after, page.stalls_after);
  SendAll(connection, cut >= 0 ? body.substr(0, static_cast<size_t>(cut)) : body);
  if (page.stalls_after < 0) return;
  // Sends nothing until the client closes the connection.
  pollfd other{connection, POLLIN, 0};
  char byte;
  while (!stop_ && ::poll(&other, 1, 50) >= 0) {
    if (other.revents != 0 && ::recv(connection, &byte, 1, 0) <= 0) return;
  }
}

}  // namespace dtrain
