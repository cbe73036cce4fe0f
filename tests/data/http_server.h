// A small HTTP/1.1 server on 127.0.0.1 for the download tests.  It can misbehave on purpose.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dtrain {

// The answers of the server for one path.
struct Page {
  std::string content = {};
  int status = 200;
  bool ignores_range = false;   // always sends all, with status 200
  int64_t dies_after = -1;      // closes after so many bytes of a body
  int64_t stalls_after = -1;    // sends nothing more after so many bytes of a body
  int faults = 1;               // how often it dies or stalls before it behaves
  int64_t claimed_length = -1;  // sent instead of the true Content-Length
};

class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;

  void Serve(const std::string& path, Page page);
  std::string Url(const std::string& path) const;

  // Returns "GET /path" or "GET /path bytes=100-" for every request so far.
  std::vector<std::string> requests() const;

 private:
  void Run();
  void Answer(int connection);
  void SendPage(int connection, Page page, int64_t from);

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;  // guards pages_ and requests_
  std::map<std::string, Page> pages_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace dtrain
