// Reads a rank's file of a checkpoint, with a valid seal around any content.
#include "framework/checkpoint/rank_checkpoint.h"

#include "framework/core/bytes.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/hdf5_image.h"

namespace dtrain::fuzz {
namespace {

// Returns the list of fields, either built from lengths and numbers of the input or taken from it
// as bytes.
std::string FieldsOf(InputReader& in) {
  const uint8_t fields = in.Byte();
  if (fields >= 16) return std::string(in.LongText());
  ByteWriter list;
  list.Value<uint64_t>(fields);
  for (uint8_t field = 0; field < fields; ++field) {
    const int64_t part = in.Byte(), kind = in.Byte(), count = in.Byte();
    list(part, std::string(in.Text()), std::string(in.Text()), kind,
         count < 200 ? count % 8 : in.Number(), std::vector<int64_t>(in.Byte() % 4, count));
  }
  return list.Take();
}

std::string RankContentOf(InputReader& in) {
  Hdf5Image image(in);
  image.Number("/rank", "format", 1);
  image.Number("/rank", "rank", 0);
  image.Number("/rank", "step", 1);
  image.Number("/rank", "samples_applied", 8);
  image.Text("/rank", "role");
  image.Text("/rank", "holds");
  image.Bytes("/rank/actors", "strategy: ps_asp\n");
  image.Bytes("/rank/placement", "workers: 1\n");
  const std::string fields = FieldsOf(in);
  image.Bytes("/rank/fields", fields);
  for (const char* const name : {"/fields/0", "/fields/1", "/fields/2"}) {
    image.Floats(name, in.Byte());
  }
  return image.Sealed();
}

void Check(const StateRecord& record) {
  for (const StateField& field : record.fields) {
    Require(record.Find(field.owner, field.name) != nullptr, "a field is not found by its name");
  }
}

bool Rank(std::string_view input) {
  InputReader in(input);
  const std::string file = RankContentOf(in);
  const auto main = WriteScratch("step-00000002.h5", "");
  WriteScratch(RankFileOf(main, 0).filename(), file);
  return Accepts(ExitCode::kCheckpoint, [&] {
    const RankCheckpoint content = ReadRankCheckpoint(main, 0, HashInSeal(file));
    Check(content.exchange);
    Check(content.host);
  });
}

DTRAIN_FUZZ_TARGET("rank_checkpoint", Rank);

}  // namespace
}  // namespace dtrain::fuzz
