// Tests what a resumed run reports about changes of its config.
#include "framework/train/config_diff.h"

#include <gtest/gtest.h>

namespace dtrain {
namespace {

TEST(ConfigDiff, NamesSectionsAndBeginsWithTheSeedAndTheStrategy) {
  EXPECT_EQ(ConfigDiff("epochs: 2\n"
                       "solver:\n"
                       "  name: sgd\n"
                       "  schedule:\n"
                       "    name: cosine\n"
                       "  lr: 0.02\n"
                       "strategy:\n"
                       "  name: allreduce\n"
                       "  fusion_bytes: 64\n"
                       "seed: 1\n"
                       "output: a\n",
                       "epochs: 4\n"
                       "solver:\n"
                       "  name: sgd\n"
                       "  schedule:\n"
                       "    name: step\n"
                       "  lr: 0.02\n"
                       "strategy:\n"
                       "  name: mgwfbp\n"
                       "  rule: exact\n"
                       "seed: 2\n"
                       "output: b\n"),
            "  seed: 1 -> 2\n"
            "  strategy.name: allreduce -> mgwfbp\n"
            "  strategy.fusion_bytes: 64 -> (none)\n"
            "  strategy.rule: (none) -> exact\n"
            "  epochs: 2 -> 4\n"
            "  solver.schedule.name: cosine -> step\n");
}

TEST(ConfigDiff, AKeyThatIsInsertedShiftsNothing) {
  EXPECT_EQ(ConfigDiff("a: 1\nb: 2\nc: 3\n", "a: 1\nnew: 0\nb: 2\nc: 3\n"), "  new: (none) -> 0\n");
  EXPECT_EQ(ConfigDiff("a: 1\n", "a: 1\n"), "");
}

}  // namespace
}  // namespace dtrain
