// Reads model profiles, which `dtrain time --profile` writes for planners and simulators.
#include "framework/core/model_profile.h"

#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

bool Profile(std::string_view input) {
  return Accepts(ExitCode::kUsage, [&] {
    const ModelProfile profile = ProfileFromJson(input, "profile.json");
    const std::string written = ToJson(profile);
    Require(ReadAgain([&] { return ProfileFromJson(written, "again"); }) == profile,
            "another profile was read again");
    Require(profile.params() >= 0 && profile.bytes() >= 0, "a sum over the layers is negative");
    Require(profile.forward_seconds() >= 0 && profile.backward_seconds() >= 0,
            "a time over the layers is negative");
  });
}

DTRAIN_FUZZ_TARGET("profile", Profile);

}  // namespace
}  // namespace dtrain::fuzz
