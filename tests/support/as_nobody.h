// AsNobody: runs as another user, for tests of files that belong to somebody else.
#pragma once

#include <unistd.h>

#include <cstdlib>

namespace dtrain {

// Root may write everywhere, so a test as root becomes the user `nobody` for the object's life.  Any other user stays
// the same.
class AsNobody {
 public:
  AsNobody()
      : was_root_(::geteuid() == 0), done_(!was_root_ || ::setresuid(kNobody, kNobody, 0) == 0) {}
  ~AsNobody() {
    if (was_root_ && done_ && ::setresuid(0, 0, 0) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  bool done() const { return done_; }

 private:
  static constexpr uid_t kNobody = 65534;
  const bool was_root_, done_;
};

}  // namespace dtrain
