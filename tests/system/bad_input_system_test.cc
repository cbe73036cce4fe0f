// Tests the exit code and message for weights and models that do not fit.
#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class BadInputTest : public SystemTest {
 protected:
  // Writes other.yaml, which trains LeNet-5 with `outputs` scores on digits.
  void WriteOther(int outputs) {
    std::string model = Slurp(DTRAIN_SOURCE_DIR "/configs/models/lenet5.yaml");
    const std::string last = "outputs: 10}";
    model.replace(model.find(last), last.size(), "outputs: " + std::to_string(outputs) + "}");
    std::ofstream(folder_ / "model.yaml") << model;
    std::ofstream(folder_ / "other.yaml")
        << "model: {name: model.yaml}\ndata: {name: digits, train_samples: 64, test_samples: 64}\n"
           "batch: 32\nepochs: 1\nsolver: {name: sgd, lr: 0.01}\n";
  }
  void Spit(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
};

TEST_F(BadInputTest, WeightsOfAnotherModelAreRefused) {
  ASSERT_EQ(Run(std::string(kSmall) + "--set max_steps=1 --output run").code, 0);
  ASSERT_EQ(Run("export --weights run --format safetensors --output w.safetensors").code, 0);
  WriteOther(12);
  for (const std::string command : {"eval", "train --output other"}) {
    const Outcome checkpoint = Run(command + " --config other.yaml --weights run");
    EXPECT_EQ(checkpoint.code, 6) << command;
    EXPECT_THAT(checkpoint.err,
                AllOf(HasSubstr("checkpoint run/checkpoints/step-00000001.h5 is of another model"),
                      HasSubstr("'fc3.bias' is [10] there and [12] here")));
    const Outcome exported = Run(command + " --config other.yaml --weights w.safetensors");
    EXPECT_EQ(exported.code, 6) << command;
    EXPECT_THAT(exported.err, AllOf(HasSubstr("weights w.safetensors are of another model"),
                                    HasSubstr("'fc3.bias' is [10] there and [12] here")));
  }
}

TEST_F(BadInputTest, TenThousandLayersAreChecked) {
  std::ofstream model(folder_ / "model.yaml");
  model << "name: deep\nlayers:\n";
  for (int i = 0; i < 9999; ++i) {
    model << "  - {name: fc" << i << ", type: inner_product, outputs: 10}\n";
  }
  model << "  - {name: loss, type: softmax_cross_entropy, input: [fc9998, label]}\n";
  model.close();
  std::ofstream(folder_ / "run.yaml")
      << "model: {name: model.yaml}\ndata: {name: digits}\nbatch: 32\nepochs: 1\n"
         "solver: {name: sgd, lr: 0.01}\n";
  const Outcome check = Run("check --config run.yaml");
  EXPECT_EQ(check.code, 0) << check.err;
  std::ofstream(folder_ / "model.yaml", std::ios::app)
      << "  - {name: one_more, type: relu, input: fc9999}\n";
  const Outcome error = Run("check --config run.yaml");
  EXPECT_EQ(error.code, 2);
  EXPECT_THAT(error.err, HasSubstr("model.yaml:10003:"));
}

TEST_F(BadInputTest, ADeviceThatCannotBeHadIsRefused) {
  WriteOther(10);
  std::ofstream(folder_ / "other.yaml", std::ios::app) << "device: cuda\n";
  // The error names the layer even on a machine without the CUDA module.
  const Outcome train = Run("train --config other.yaml");
  EXPECT_EQ(train.code, 2);
  EXPECT_THAT(train.err,
              AllOf(HasSubstr("device 'cuda' is not available"), HasSubstr("device: cpu")));
  const Outcome check = Run("check --config other.yaml");
  if (check.code == 2) {
    EXPECT_THAT(check.err, HasSubstr("other.yaml:6:1: device 'cuda' is not available: "));
  } else {
    EXPECT_THAT(check.err, HasSubstr("device 'cuda' is not available on this machine: "));
  }
  EXPECT_EQ(Run("check --config other.yaml --set device=auto").code, 0);
}

// The allocation that fails may be that of a thread, the data set or a layer's kernels (oneDNN's is not tested).  Only
// large chunks are refused (scarce/scarce_memory.cc), at points that follow from the use of a whole run.
TEST_F(BadInputTest, WhereMemoryEndsTheErrorSaysForWhat) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer allocates memory by itself";
#endif
  const auto train = [&](int64_t granted) {
    return Run(
        "train --config $CONFIGS/quickstart.yaml --set threads=1 --set cluster.workers=1 "
        "--set max_steps=2 --output run-" +
            std::to_string(granted),
        "env LD_PRELOAD=" DTRAIN_BINARY_DIR
        "/tests/system/libscarce_memory.so DTRAIN_TAKEN=taken DTRAIN_GRANTED=" +
            std::to_string(granted));
  };
  const Outcome whole = train(INT64_MAX);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const int64_t most = std::stoll(Slurp(folder_ / "taken"));
  for (int64_t part = 0; part < 15; ++part) {
    const int64_t granted = most * part / 16;
    const Outcome outcome = train(granted);
    EXPECT_EQ(outcome.code, 2) << granted << " of " << most << ": " << outcome.err;
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("there is no memory for "),
                                   HasSubstr("the system refuses one more thread")))
        << granted << " of " << most;
  }
}

TEST_F(BadInputTest, DamagedWeightsAreNamed) {
  ASSERT_EQ(Run(std::string(kSmall) + "--set max_steps=1 --output run").code, 0);
  ASSERT_EQ(Run("export --weights run --format safetensors --output w.safetensors").code, 0);
  const std::string good = Slurp(folder_ / "w.safetensors");
  const auto message = [&](const std::string& file, const std::string& content) {
    Spit(file, content);
    const Outcome outcome = Run("eval --config $CONFIGS/quickstart.yaml --weights " + file);
    EXPECT_EQ(outcome.code, 6) << file;
    return outcome.err;
  };
  EXPECT_THAT(message("cut.safetensors", good.substr(0, 100000)),
              AllOf(HasSubstr("cannot read cut.safetensors: "), HasSubstr("do not fit the "),
                    HasSubstr("the file is truncated or damaged")));
  EXPECT_THAT(message("five.safetensors", good.substr(0, 5)), HasSubstr("5 bytes are too few"));
  std::string absurd = good;
  const uint64_t length = UINT64_MAX;
  std::memcpy(absurd.data(), &length, sizeof(length));
  EXPECT_THAT(message("absurd.safetensors", absurd),
              HasSubstr("byte 0: a header of 18446744073709551615 bytes in a file of "));
  EXPECT_THAT(message("text.h5", "model: {name: lenet5}\n"),
              AllOf(HasSubstr("cannot read text.h5"),
                    HasSubstr("neither a checkpoint nor a safetensors file")));
}

// One byte of the newest checkpoint is flipped: every command that reads it reports that, and only a run that may take
// an older checkpoint continues.
TEST_F(BadInputTest, AFlippedByteIsCodeSixAndResumeTakesTheOlderStep) {
  ASSERT_EQ(
      Run(std::string(kSmall) + "--set max_steps=2 --set checkpoint.every_steps=1 --output run")
          .code,
      0);
  ASSERT_EQ(Run("export --weights run --output w.safetensors").code, 0);
  const auto flip = [&](const std::string& from, const std::string& to) {
    std::string bytes = Slurp(folder_ / from);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    Spit(to, bytes);
  };
  flip("run/checkpoints/step-00000002.h5", "run/checkpoints/step-00000002.h5");
  flip("w.safetensors", "bad.safetensors");
  for (const std::string weights : {"run", "bad.safetensors"}) {
    for (const std::string command :
         {"ckpt verify ", "eval --config $CONFIGS/quickstart.yaml --weights ",
          "train --config $CONFIGS/quickstart.yaml --output other --weights ",
          "export --output again.h5 --weights "}) {
      const Outcome outcome = Run(command + weights);
      EXPECT_EQ(outcome.code, 6) << command << weights;
      EXPECT_THAT(outcome.out + outcome.err, HasSubstr(" is damaged: ")) << command << weights;
    }
  }
  const Outcome resumed = Run(std::string(kSmall) +
                              "--set max_steps=2 --set checkpoint.every_steps=1 --output run "
                              "--resume auto");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("step-00000002.h5 is damaged: "),
                                 HasSubstr("going on from step-00000001.h5")));
  EXPECT_EQ(Run("ckpt verify run").code, 0);  // the second step was made again
}

TEST_F(BadInputTest, AModelWithFewerScoresThanClassesIsRefusedBeforeTraining) {
  WriteOther(7);
  for (const std::string command : {"check", "train --output run"}) {
    const Outcome outcome = Run(command + " --config other.yaml");
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("layer 'fc3' (inner_product): the data (digits, other.yaml:"),
                      HasSubstr("has 10 classes, but the layer has 7 outputs: set outputs: 10")));
  }
}

}  // namespace
}  // namespace dtrain
