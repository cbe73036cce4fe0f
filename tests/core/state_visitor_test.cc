#include "framework/core/state_visitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

struct Sample {
  int64_t clock = 0;
  std::vector<int64_t> finished;
  std::vector<float> residual = std::vector<float>(3);

  void Visit(StateVisitor& visitor) {
    visitor.Int("clock", clock);
    visitor.Ints("finished", finished);
    visitor.Floats("residual", residual);
  }
  friend bool operator==(const Sample&, const Sample&) = default;
};

const Sample kSample{-7, {815, 0, INT64_MIN}, {1.5f, -0.0f, 1e-40f}};

// Has one field with a name of Sample's but another type or size.
struct Other {
  std::string_view name;
  std::vector<int64_t> values;
  void Visit(StateVisitor& visitor) { visitor.Ints(name, values); }
};

template <class Object>
std::string LoadError(Object object, const std::string& bytes) {
  try {
    LoadState(object, bytes);
  } catch (const CheckpointError& error) {
    return error.hint().empty() ? error.what() : std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

TEST(StateVisitor, LoadsWhatWasSaved) {
  Sample saved = kSample, loaded;
  loaded.finished = {1, 2, 3, 4, 5};
  LoadState(loaded, SaveState(saved));
  EXPECT_EQ(loaded, kSample);
  EXPECT_EQ(saved, kSample);
}

TEST(StateVisitor, LoadsEmptyLists) {
  Sample saved, loaded = kSample;
  LoadState(loaded, SaveState(saved));
  EXPECT_EQ(loaded, Sample{});
}

TEST(StateVisitor, HashesEveryField) {
  Sample sample = kSample, same = kSample;
  const std::string hash = HashState(sample);
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(HashState(same), hash);
  same.clock = -8;
  EXPECT_NE(HashState(same), hash);
  same = kSample;
  same.finished.back() += 1;
  EXPECT_NE(HashState(same), hash);
  same = kSample;
  same.residual[1] = 0.0f;
  EXPECT_NE(HashState(same), hash);
}

TEST(StateVisitor, ListsDoNotRunIntoEachOther) {
  struct Lists {
    std::vector<int64_t> a, b;
    void Visit(StateVisitor& visitor) {
      visitor.Ints("a", a);
      visitor.Ints("b", b);
    }
  };
  Lists one{{1, 2}, {}}, other{{1}, {2}};
  EXPECT_NE(HashState(one), HashState(other));
}

TEST(StateVisitor, EndsEarly) {
  Sample sample = kSample;
  const std::string bytes = SaveState(sample);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(LoadError(Sample{}, bytes.substr(0, size)), HasSubstr("saved state ends within '"));
  }
  EXPECT_EQ(LoadError(Sample{}, bytes.substr(0, bytes.size() - 1)),
            "saved state ends within 'residual'");
}

TEST(StateVisitor, HasMoreThanExpected) {
  Sample sample;
  Other extra{"extra", {1}};
  EXPECT_EQ(LoadError(Sample{}, SaveState(sample) + SaveState(extra)),
            "saved state has more fields than expected");
}

TEST(StateVisitor, HasAnotherField) {
  Other other{"version", {1}};
  EXPECT_EQ(LoadError(Sample{}, SaveState(other)),
            "saved state holds 'version' where 'clock' is expected | it was saved by another "
            "strategy or version");
}

TEST(StateVisitor, NumberIsAList) {
  Other other{"clock", {1, 2}};
  EXPECT_EQ(LoadError(Sample{}, SaveState(other)), "saved 'clock' is not one number");
}

TEST(StateVisitor, VectorHasAnotherSize) {
  Sample larger;
  larger.residual.resize(4);
  EXPECT_EQ(LoadError(Sample{}, SaveState(larger)),
            "saved 'residual' has 4 values instead of 3 | it was saved with another model or "
            "another number of servers");
}

}  // namespace
}  // namespace dtrain
