// Computes SHA-256 (OpenSSL's), for weights_sha256, config_sha256 and downloads.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace dtrain {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Update(const void* data, size_t bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }
  std::string HexDigest();          // ends the computation; 64 lower-case digits
  std::string DigestSoFar() const;  // digest of the bytes so far; more may follow

  static std::string Of(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain
