// Damaged files of weights: none may crash the reader, and none may be accepted with other content.  The damage is a
// flipped bit anywhere or in the file's own structures, a cut, or bytes set to zero, swapped or appended.
// DTRAIN_DAMAGES is the number of files of each kind (default 250; each file without a seal takes a process of its
// own).
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <iostream>

#include "framework/checkpoint/weights_file.h"
#include "framework/core/random.h"
#include "framework/hdf5/hdf5_file.h"
#include "tests/checkpoint/checkpoint_sample.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

int64_t Damages() {
  const char* const given = std::getenv("DTRAIN_DAMAGES");
  return given == nullptr ? 250 : std::atoll(given);
}

// Returns the offsets of HDF5's structures: each begins with a signature of four letters.
std::vector<size_t> StructuresIn(const std::string& file) {
  std::vector<size_t> places = {0};
  for (const char* const name : {"HDF\r", "OHDR", "OCHK", "FRHP", "FHDB", "FHIB", "FSHD", "FSSE",
                                 "BTHD", "BTIN", "BTLF", "FAHD", "FADB", "EAHD", "TREE", "SNOD"}) {
    for (size_t at = file.find(name); at != std::string::npos; at = file.find(name, at + 1)) {
      places.push_back(at);
    }
  }
  return places;
}

// One way to damage a file; the same `number` always gives the same damage.
class Damage {
 public:
  Damage(uint64_t number, const std::string& good)
      : random_(number, Purpose::kSelfTest), good_(good) {}

  std::string Done() {
    std::string bad = good_;
    do Apply(bad);
    while (bad == good_);
    return bad;
  }
  const std::string& what() const { return what_; }

 private:
  size_t Below(size_t limit) { return static_cast<size_t>(random_.Below(next_++, limit)); }

  void Flip(std::string& bad, size_t at) {
    at = std::min(at, bad.size() - 1);
    bad[at] = static_cast<char>(bad[at] ^ (1 << Below(8)));
    what_ += " flip " + std::to_string(at);
  }

  void Apply(std::string& bad) {
    constexpr size_t kStructureBytes = 96;
    const size_t at = Below(bad.size()), length = 1 + Below(std::min<size_t>(600, bad.size() - at));
    switch (Below(8)) {
      case 0:
      case 1:
        return Flip(bad, at);
      case 2:
      case 3:
      case 4: {
        const std::vector<size_t> places = StructuresIn(bad);
        return Flip(bad, places[Below(places.size())] + Below(kStructureBytes));
      }
      case 5:
        what_ += " cut at " + std::to_string(at);
        return bad.resize(at);
      case 6:
        what_ += " zeros at " + std::to_string(at);
        return Blank(bad, at, length);
      default:
        return Below(2) == 0 ? Swap(bad) : Append(bad, length);
    }
  }

  void Blank(std::string& bad, size_t at, size_t length) {
    std::fill_n(bad.begin() + static_cast<ptrdiff_t>(at), length, '\0');
  }
  void Swap(std::string& bad) {
    constexpr size_t kBlock = 128;
    if (bad.size() < 2 * kBlock) return Flip(bad, 0);
    const size_t a = kBlock * Below(bad.size() / kBlock), b = kBlock * Below(bad.size() / kBlock);
    what_ += " swap " + std::to_string(a) + " and " + std::to_string(b);
    std::swap_ranges(bad.begin() + static_cast<ptrdiff_t>(std::min(a, b)),
                     bad.begin() + static_cast<ptrdiff_t>(std::min(a, b) + (a == b ? 0 : kBlock)),
                     bad.begin() + static_cast<ptrdiff_t>(std::max(a, b)));
  }
  void Append(std::string& bad, size_t length) {
    what_ += " append " + std::to_string(length);
    bad += good_.substr(0, length);
  }

  Random random_;
  uint64_t next_ = 0;
  const std::string& good_;
  std::string what_;
};

// HDF5 stores a group of more than eight names in another way, and version 1.10.8 crashes on damage there.
struct ManyParameters : CheckpointSample {
  ManyParameters() {
    for (int i = 0; i < 12; ++i) {
      const int64_t end = layout.parameters.size();
      layout.parameters.entries.push_back({"fc" + std::to_string(i), {2}, {end, end + 2}});
    }
    for (int64_t i = 0; i < layout.parameters.size(); ++i) {
      weights.resize(static_cast<size_t>(i + 1), 0.5f * static_cast<float>(i));
      momentum.resize(static_cast<size_t>(i + 1), 0.25f);
    }
  }
};

// Returns the file as dtrain wrote it at revision f15a69d.
std::string WithoutSeal(const CheckpointView& view) {
  Hdf5Builder out(0);
  const auto write = [&](const std::string& group, const ArenaLayout& layout, const float* values) {
    for (const ArenaEntry& entry : layout.entries) {
      out.WriteFloats(group + entry.name, entry.shape, values + entry.range.begin);
    }
  };
  write("/model/", view.layout.parameters, view.weights);
  write("/state/", view.layout.state, view.state);
  write("/solver/momentum/", view.layout.parameters, view.solver.at("momentum"));
  const CheckpointInfo& info = view.info;
  for (const auto& [name, value] : {std::pair<std::string, int64_t>{"format", 1},
                                    {"epoch", info.position.epoch},
                                    {"step", info.position.step},
                                    {"samples_applied", info.position.samples_applied},
                                    {"updates", info.position.updates},
                                    {"seed", static_cast<int64_t>(info.seed)}}) {
    out.SetAttribute("/run", name, value);
  }
  out.SetAttribute("/run", "model", info.model);
  out.SetAttribute("/run", "solver", info.solver);
  out.SetAttribute("/run", "source_revision", info.source_revision);
  out.WriteText("/run/config", info.config_yaml);
  out.WriteText("/run/plan", info.plan_json);
  return std::string(out.Finish().Content());
}

bool SameLayout(const ArenaLayout& a, const ArenaLayout& b) {
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const ArenaEntry& x, const ArenaEntry& y) {
                      return x.name == y.name && x.shape == y.shape && x.range == y.range;
                    });
}

// Compares all but the numbers.
bool SameFrame(const StoredCheckpoint& a, const StoredCheckpoint& b) {
  return a.info == b.info && SameLayout(a.layout.parameters, b.layout.parameters) &&
         SameLayout(a.layout.state, b.layout.state) && a.solver.size() == b.solver.size();
}

std::vector<std::vector<float>> ArenasOf(const StoredCheckpoint& stored) {
  std::vector<std::vector<float>> arenas = {stored.weights, stored.state};
  for (const auto& [vector, values] : stored.solver) arenas.push_back(values);
  return arenas;
}

// Returns whether every number is the original one or, with `or_zero`, 0.
bool SameNumbers(const StoredCheckpoint& read, const StoredCheckpoint& good, bool or_zero) {
  const auto arenas = ArenasOf(read), good_arenas = ArenasOf(good);
  for (size_t a = 0; a < arenas.size(); ++a) {
    if (arenas[a].size() != good_arenas[a].size()) return false;
    for (size_t i = 0; i < arenas[a].size(); ++i) {
      const auto bits = std::bit_cast<uint32_t>(arenas[a][i]);
      if (bits == std::bit_cast<uint32_t>(good_arenas[a][i])) continue;
      if (!or_zero || bits != 0) return false;
    }
  }
  return true;
}

struct Counts {
  int64_t refused = 0;
  int64_t crashed = 0;    // of the refused files, those that crashed the child
  int64_t unchanged = 0;  // accepted with all content of the original file
  int64_t zeroed = 0;     // accepted with zeros in place of numbers
  int64_t accepted = 0;   // accepted with any other content
};

class DamagedFiles : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_GT(Damages(), 0) << "DTRAIN_DAMAGES is not a number"; }

  Counts Read(const fs::path& good_path) {
    const std::string good = Slurp(good_path);
    const StoredWeights whole = ReadStoredWeights(good_path, CheckpointPart::kAll);
    const fs::path path = folder_ / ("bad" + good_path.extension().string());
    Counts counts;
    for (int64_t number = 0; number < Damages(); ++number) {
      Damage damage(static_cast<uint64_t>(number), good);
      Spit(path, damage.Done());
      try {
        const StoredWeights read = ReadStoredWeights(path, CheckpointPart::kAll);
        int64_t& count = !SameFrame(read, whole)           ? counts.accepted
                         : SameNumbers(read, whole, false) ? counts.unchanged
                         : SameNumbers(read, whole, true)  ? counts.zeroed
                                                           : counts.accepted;
        ++count;
        if (&count == &counts.accepted) ADD_FAILURE() << "file " << number << damage.what();
      } catch (const CheckpointError& error) {
        ++counts.refused;
        const std::string what = error.what();
        EXPECT_NE(what.find(path.string()), std::string::npos) << what;
        if (what.find("the reading process crashed") != std::string::npos) ++counts.crashed;
      }
    }
    std::cout << good_path.filename().string() << ": " << Damages() << " damaged files, "
              << counts.refused << " refused (" << counts.crashed << " of them crashed a child), "
              << counts.unchanged << " read as they were, " << counts.zeroed
              << " with zeros for numbers, " << counts.accepted << " accepted otherwise\n";
    return counts;
  }

  ManyParameters sample_;
  fs::path folder_ = FreshFolder();
};

TEST_F(DamagedFiles, NoSealedCheckpointIsAccepted) {
  WriteCheckpoint(folder_ / "good.h5", sample_.View());
  EXPECT_EQ(Read(folder_ / "good.h5").refused, Damages());
}

TEST_F(DamagedFiles, NoExportIsAccepted) {
  WriteCheckpoint(folder_ / "good.h5", sample_.View());
  WriteStoredWeights(folder_ / "good.safetensors", WeightsFormat::kSafetensors,
                     ReadStoredWeights(folder_ / "good.h5", CheckpointPart::kAll));
  EXPECT_EQ(Read(folder_ / "good.safetensors").refused, Damages());
}

// Some bytes of these files have no meaning, and numbers that became zero together with their checksum look like real
// zeros: besides crashes, the reason why checkpoints have a seal.
TEST_F(DamagedFiles, NoCheckpointWithoutASealIsReadAsSomethingElse) {
  Spit(folder_ / "without_seal.h5", WithoutSeal(sample_.View()));
  const Counts counts = Read(folder_ / "without_seal.h5");
  EXPECT_EQ(counts.accepted, 0);
  EXPECT_GT(counts.refused, Damages() / 2);
  EXPECT_LE(counts.zeroed, Damages() / 100);
}

}  // namespace
}  // namespace dtrain
