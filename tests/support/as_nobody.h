// AsNobody: another user, for tests of files that belong to somebody else.
#pragma once

#include <unistd.h>

#include <cstdlib>

namespace dtrain {

// Root may write everywhere, so it goes on as nobody for a while.  Any other user stays what he is.
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
