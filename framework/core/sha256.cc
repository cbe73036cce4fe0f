#include "framework/core/sha256.h"

#include <openssl/evp.h>

#include "framework/core/check.h"
#include "framework/core/text.h"

namespace dtrain {

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

namespace {

std::string End(EVP_MD_CTX* context) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  DT_CHECK(EVP_DigestFinal_ex(context, digest, &length) == 1);
  return Hex(digest, length);
}

}  // namespace

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  DT_CHECK(EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::Update(const void* data, size_t bytes) {
  DT_CHECK(EVP_DigestUpdate(impl_->context, data, bytes) == 1);
}

std::string Sha256::HexDigest() { return End(impl_->context); }

std::string Sha256::DigestSoFar() const {
  const Impl copy;
  DT_CHECK(EVP_MD_CTX_copy_ex(copy.context, impl_->context) == 1);
  return End(copy.context);
}

std::string Sha256::Of(std::string_view text) {
  Sha256 hash;
  hash.Update(text);
  return hash.HexDigest();
}

}  // namespace dtrain
