// Reads checkpoints with a valid seal around any content, and files with an invalid seal.
#include "framework/checkpoint/stored_checkpoint.h"
#include "framework/core/execution_plan.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/hdf5_image.h"

namespace dtrain::fuzz {
namespace {

// Makes the parts of a checkpoint, one after the other, as the input directs.
std::string ContentOf(InputReader& in) {
  using std::string_literals::operator""s;
  Hdf5Image image(in);
  image.Number("/run", "format", 2);
  for (const char* const name : {"epoch", "step", "samples_applied", "updates", "seed"}) {
    image.Number("/run", name, 1);
  }
  for (const char* const name : {"model", "solver", "source_revision"}) image.Text("/run", name);
  image.Bytes("/run/config", "batch: 1\n");
  image.Bytes("/run/plan", "{}");
  image.Bytes("/run/text", "");
  image.Bytes("/run/rank_files", "");
  image.Bytes("/run/parameters", "a\0b\0"s);
  image.Bytes("/run/state", "s\0"s);
  image.Bytes("/run/solver_vectors", "momentum\0"s);
  for (const char* const name :
       {"/model/a", "/model/b", "/state/s", "/solver/momentum/a", "/solver/momentum/b"}) {
    image.Floats(name, in.Byte());
  }
  return image.Sealed();
}

void Check(const StoredCheckpoint& stored) {
  Require(static_cast<int64_t>(stored.weights.size()) == stored.layout.parameters.size(),
          "weights are missing");
  Require(static_cast<int64_t>(stored.state.size()) == stored.layout.state.size(),
          "statistics are missing");
  for (const auto& [vector, values] : stored.solver) {
    Require(values.size() == stored.weights.size(), "a solver's vector has another size");
  }
}

// The first byte chooses how much is read, and whether the rest is the file itself.  Such a file
// always begins like a sealed one: each file without a seal would be read by a child process, which
// is slow.
bool AnyCheckpoint(std::string_view input) {
  InputReader in(input);
  const uint8_t choice = in.Byte();
  const auto part = static_cast<CheckpointPart>(choice % 3);
  const std::string file =
      choice >= 128 ? "dtrain checkpoint\n" + std::string(in.Rest()) : ContentOf(in);
  const auto path = WriteScratch("step-00000001.h5", file);
  return Accepts(ExitCode::kCheckpoint, [&] { Check(ReadStoredCheckpoint(path, part)); });
}

DTRAIN_FUZZ_TARGET("checkpoint", AnyCheckpoint);

}  // namespace
}  // namespace dtrain::fuzz
