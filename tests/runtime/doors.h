// A listening TCP socket, and one that connects to it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace dtrain {

// Listens for connections on `address`.
class Door {
 public:
  explicit Door(const char* address, int flags = SOCK_CLOEXEC)
      : fd_(::socket(AF_INET, SOCK_STREAM | flags, 0)) {
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = ::inet_addr(address);
    socklen_t size = sizeof(place);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&place), &size), 0);
    port_ = place.sin_port;
  }
  ~Door() { ::close(fd_); }
  Door(const Door&) = delete;
  int Accept() const { return ::accept(fd_, nullptr, nullptr); }
  in_port_t port() const { return port_; }

 private:
  int fd_;
  in_port_t port_ = 0;
};

// Connects to a port of this machine.  Over loopback an accepted connection is established when connect(2) returns.
class Visitor {
 public:
  explicit Visitor(const Door& door)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = ::inet_addr("127.0.0.1");
    place.sin_port = door.port();
    ::connect(fd_, reinterpret_cast<sockaddr*>(&place), sizeof(place));
  }
  ~Visitor() { ::close(fd_); }
  Visitor(const Visitor&) = delete;
  bool IsIn() const {
    tcp_info info = {};
    socklen_t size = sizeof(info);
    EXPECT_EQ(::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_state == TCP_ESTABLISHED;
  }
  bool Say(const std::string& text) const {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

 private:
  int fd_;
};

}  // namespace dtrain
