// Installs the program with `cmake --install` into a folder of the test's own and runs it from elsewhere.
#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Installed : public SystemTest {
 protected:
  void SetUp() override {
    SystemTest::SetUp();
    const std::string prefix = (folder_ / "usr").string();
    const std::string command = "cmake --install " DTRAIN_BINARY_DIR " --prefix '" + prefix +
                                "' >'" + prefix + ".log' 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << Slurp(prefix + ".log");
  }
  std::string Program() const override { return (folder_ / "usr/bin/dtrain").string(); }

  std::string Text(const std::string& file) const { return Slurp(folder_ / "usr" / file); }
};

constexpr char kBrief[] =
    " --set data.train_samples=256 --set data.test_samples=64 --set max_steps=2 ";

TEST_F(Installed, TrainsFromTheRootFolderByTheNameOfAConfig) {
  const std::string output = " --output " + (folder_ / "run").string();
  const Outcome named = Run("train --config quickstart" + (kBrief + output), "cd /;");
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_THAT(Slurp(folder_ / "run/summary.json"), HasSubstr("\"completed\""));
  const Outcome by_path = Run(
      "train --config configs/runs/quickstart.yaml --workers 2" + (kBrief + output + "2"), "cd /;");
  EXPECT_EQ(by_path.code, 0) << by_path.err;
  EXPECT_THAT(Run("list models", "cd /;").out, HasSubstr("lenet5"));
  EXPECT_EQ(Run("check --config quickstart --cluster tianhe2", "cd /;").code, 0);
}

TEST_F(Installed, SaysWhereAModelWasLookedFor) {
  const Outcome outcome = Run("check --config quickstart --set model.name=lenet7");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("there is no model 'lenet7'"), HasSubstr("did you mean 'lenet5'"),
                    HasSubstr("usr/share/dtrain/configs/models")));
}

TEST_F(Installed, BringsWhatBelongsToIt) {
  EXPECT_THAT(Text("share/doc/dtrain/copyright"), HasSubstr("Apache License"));
  EXPECT_THAT(Text("share/doc/dtrain/README.md"), HasSubstr("dtrain"));
  EXPECT_THAT(Text("share/bash-completion/completions/dtrain"), HasSubstr("complete -F"));
  EXPECT_THAT(Text("share/zsh/vendor-completions/_dtrain"), StartsWith("#compdef dtrain"));
  EXPECT_THAT(Text("share/dtrain/launch/slurm/train.sbatch"),
              AllOf(HasSubstr("(dtrain train"), Not(HasSubstr("build/"))));
  const std::string manual = "gzip -dc usr/share/man/man1/dtrain.1.gz >manual; :";
  Run("--version", manual + " &&");
  EXPECT_THAT(Slurp(folder_ / "manual"), StartsWith(".TH DTRAIN 1"));
  const bool has_module = fs::exists(DTRAIN_BINARY_DIR "/libdtrain_cuda.so");
  EXPECT_THAT(Run("doctor").out, has_module ? HasSubstr("CUDA") : HasSubstr(""));
}

TEST_F(Installed, GoesBeneathDestdirAsPackagesWantIt) {
  const std::string command = "DESTDIR='" + (folder_ / "stage").string() +
                              "' cmake --install " DTRAIN_BINARY_DIR
                              " --prefix /usr >/dev/null && test -x '" +
                              (folder_ / "stage/usr/bin/dtrain").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace dtrain
