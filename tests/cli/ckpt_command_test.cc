// Tests the output and exit codes of `dtrain ckpt info|verify|diff`, in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/core/sha256.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/cli/command_outcome.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CkptCommand : public ::testing::Test {
 protected:
  static CommandOutcome Ckpt(std::vector<std::string> words) {
    words.insert(words.begin(), "ckpt");
    return RunCommand(words);
  }

  std::string Save(const std::string& name) {
    fs::create_directories((folder_ / name).parent_path());
    WriteCheckpoint(folder_ / name, sample_.View());
    return (folder_ / name).string();
  }
  std::string SaveDamaged(const std::string& name) {
    std::string bytes = Slurp(Save(name));
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    Spit(folder_ / name, bytes);
    return (folder_ / name).string();
  }

  // Saves a step of two ranks, with the second one's residual and clock as given.
  std::string SaveWithRanks(const std::string& name, float residual, int64_t clock = 7) {
    fs::create_directories((folder_ / name).parent_path());
    sample_.info.rank_files.clear();
    for (const int64_t rank : {0, 1}) {
      RankCheckpoint file;
      file.rank = rank;
      file.role = "worker " + std::to_string(rank);
      if (rank == 1) file.holds = "worker 1 has 3 gradients not pulled yet";
      std::vector<float> values(78, 1);
      if (rank == 1) values[77] = residual;  // the last element of conv1.weight
      file.exchange.fields = {
          {file.role, "clock", StateField::Kind::kInt, {rank == 1 ? clock : 7}, {}},
          {file.role, "residual", StateField::Kind::kFloats, {}, values}};
      file.host.fields = {{"", "steps", StateField::Kind::kInt, {5}, {}}};
      sample_.info.rank_files.push_back(WriteRankCheckpoint(folder_ / name, file));
    }
    const std::string path = Save(name);
    sample_.info.rank_files.clear();
    return path;
  }

  CheckpointSample sample_;
  fs::path folder_ = FreshFolder();
};

TEST_F(CkptCommand, InfoSaysWhereWeightsComeFrom) {
  const std::string path = Save("c.h5");
  const CommandOutcome text = Ckpt({"info", path});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("file             " + path + "\n"),
                    HasSubstr("model            lenet5\n"), HasSubstr("step             1832\n"),
                    HasSubstr("parameters       78\n"), Not(HasSubstr("ip1.bias"))));
  const json info = IndentedJson(Ckpt({"info", path, "--json"}).out);
  EXPECT_EQ(info["format"], "hdf5");
  EXPECT_EQ(info["model"], "lenet5");
  EXPECT_EQ(info["epoch"], 2);
  EXPECT_EQ(info["step"], 1832);
  EXPECT_EQ(info["samples_applied"], 117248);
  EXPECT_EQ(info["source_revision"], "abc123");
  EXPECT_EQ(info["parameters"], 78);
  EXPECT_EQ(info["statistics"], 4);
  EXPECT_EQ(info["solver"], "sgd");
  EXPECT_EQ(info["seed"], 0xffffffffffffffff);
  EXPECT_FALSE(info.contains("tensors"));
  // The tensors in name order: bn1.*, conv1.weight, ip1.bias, ip1.weight, scale.
  std::string bytes;
  const auto add = [&](const std::vector<float>& arena, int64_t begin, int64_t count) {
    bytes.append(reinterpret_cast<const char*>(arena.data() + begin), 4 * count);
  };
  add(sample_.state, 0, 4);
  add(sample_.weights, 28, 50);
  add(sample_.weights, 0, 3);
  add(sample_.weights, 3, 24);
  add(sample_.weights, 27, 1);
  EXPECT_EQ(info["weights_sha256"], Sha256::Of(bytes));
}

TEST_F(CkptCommand, InfoListsTensorsByName) {
  const std::string path = Save("c.h5");
  const CommandOutcome text = Ckpt({"info", "--tensors", path});
  EXPECT_EQ(text.code, 0);
  EXPECT_LT(text.out.find("  conv1.weight "), text.out.find("  ip1.bias "));
  EXPECT_LT(text.out.find("  ip1.bias "), text.out.find("  bn1.mean "));
  EXPECT_THAT(text.out, HasSubstr("[2,1,5,5]\n"));
  const json tensors = json::parse(Ckpt({"info", "--tensors", path, "--json"}).out)["tensors"];
  ASSERT_EQ(tensors["parameters"].size(), 4u);
  EXPECT_EQ(tensors["parameters"][1], (json{{"name", "ip1.bias"}, {"shape", {3}}}));
  ASSERT_EQ(tensors["statistics"].size(), 2u);
  EXPECT_EQ(tensors["statistics"][1]["name"], "bn1.variance");
}

TEST_F(CkptCommand, InfoOfADamagedOrMissingFileIsAnError) {
  const CommandOutcome damaged = Ckpt({"info", SaveDamaged("c.h5")});
  EXPECT_EQ(damaged.code, 6);
  EXPECT_THAT(damaged.err, HasSubstr("c.h5 is damaged: "));
  EXPECT_EQ(damaged.out, "");
  EXPECT_EQ(Ckpt({"info", (folder_ / "none.h5").string()}).code, 6);
}

TEST_F(CkptCommand, InfoListsWhatEachRankHas) {
  const std::string path = SaveWithRanks("step-00000010.h5", 0.5F);
  const CommandOutcome text = Ckpt({"info", path});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("\nstep-00000010.rank-1.h5 (worker 1), 2 numbers; worker 1 has "
                              "3 gradients not pulled yet\n"),
                    HasSubstr("  worker 1: residual "), HasSubstr(" [78]\n")));
  const json ranks = json::parse(Ckpt({"info", path, "--json"}).out)["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1]["role"], "worker 1");
  EXPECT_EQ(ranks[1]["steps"], 5);
  EXPECT_EQ(ranks[1]["vectors"], (json{{"worker 1: residual", 78}}));
  // The name of any of its files selects the same step.
  EXPECT_EQ(Ckpt({"info", (folder_ / "step-00000010.rank-1.h5").string()}).out, text.out);
}

TEST_F(CkptCommand, VerifyChecksTheFilesOfAllRanks) {
  const std::string path = SaveWithRanks("step-00000010.h5", 0.5F);
  const std::string rank = (folder_ / "step-00000010.rank-1.h5").string();
  const CommandOutcome sound = Ckpt({"verify", path});
  EXPECT_EQ(sound.code, 0);
  EXPECT_THAT(sound.out, AllOf(HasSubstr(path + ": ok\n"), HasSubstr(rank + ": ok\n")));
  SaveWithRanks("step-00000010.h5", std::nanf(""));
  EXPECT_THAT(Ckpt({"verify", path}).out,
              HasSubstr(rank + ": 1 of its numbers are NaN or infinite"));
  std::string bytes = Slurp(rank);
  bytes[600] = static_cast<char>(bytes[600] ^ 1);
  Spit(rank, bytes);
  const CommandOutcome damaged = Ckpt({"verify", path});
  EXPECT_EQ(damaged.code, 6);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr(path + ": ok\n"), HasSubstr(rank + " is damaged: ")));
  fs::remove(rank);
  const CommandOutcome missing = Ckpt({"verify", path});
  EXPECT_EQ(missing.code, 6);
  EXPECT_THAT(missing.out, HasSubstr(rank + " is missing"));
}

TEST_F(CkptCommand, DiffNamesWhatRanksDifferIn) {
  const std::string a = SaveWithRanks("a/step-00000010.h5", 0.5F);
  const std::string b = SaveWithRanks("b/step-00000010.h5", 0.5F);
  EXPECT_EQ(Ckpt({"diff", a, b}).code, 0);
  SaveWithRanks("b/step-00000010.h5", 0.75F, 8);
  const CommandOutcome text = Ckpt({"diff", a, b});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("rank 1, worker 1: residual conv1.weight "),
                    HasSubstr("rank 1, worker 1: clock "), HasSubstr("7 and 8\n"),
                    HasSubstr("0 of 6 tensors differ, and what the ranks have of their own\n"),
                    Not(HasSubstr("ip1")), Not(HasSubstr("rank 0"))));
}

TEST_F(CkptCommand, VerifySaysOkForEveryFormat) {
  const std::string path = Save("c.h5"), exported = (folder_ / "w.safetensors").string();
  WriteStoredWeights(exported, WeightsFormat::kSafetensors, ReadStoredWeights(path));
  const std::string older = DTRAIN_SOURCE_DIR "/tests/checkpoint/without_seal.h5";
  const CommandOutcome outcome = Ckpt({"verify", path, exported, older});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, path + ": ok\n" + exported + ": ok\n" + older + ": ok\n");
}

TEST_F(CkptCommand, VerifyNamesTheDamagedFile) {
  const std::string good = Save("a.h5"), bad = SaveDamaged("b.h5");
  const CommandOutcome text = Ckpt({"verify", good, bad});
  EXPECT_EQ(text.code, 6);
  EXPECT_THAT(text.out, AllOf(HasSubstr(good + ": ok\n"),
                              HasSubstr("\n" + bad + " is damaged: its bytes do not match")));
  const CommandOutcome outcome = Ckpt({"verify", "--json", good, bad});
  EXPECT_EQ(outcome.code, 6);
  const json verdict = IndentedJson(outcome.out);
  EXPECT_EQ(verdict["ok"], false);
  EXPECT_EQ(verdict["files"][0], (json{{"file", good}, {"problem", ""}}));
  EXPECT_THAT(verdict["files"][1]["problem"].get<std::string>(), HasSubstr("is damaged: "));
}

TEST_F(CkptCommand, VerifyJudgesTheOthersWhenOneIsMissing) {
  const std::string good = Save("a.h5"), absent = (folder_ / "none.h5").string();
  const CommandOutcome outcome = Ckpt({"verify", absent, good});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_EQ(outcome.out, "there is no checkpoint at " + absent + "\n" + good + ": ok\n");
}

TEST_F(CkptCommand, VerifyCountsWhatIsNoNumber) {
  sample_.weights[7] = std::nanf("");
  sample_.state[0] = INFINITY;
  const CommandOutcome weights = Ckpt({"verify", Save("w.h5")});
  EXPECT_EQ(weights.code, 6);
  EXPECT_THAT(weights.out, HasSubstr("w.h5: 2 of its weights are NaN or infinite\n"));
  sample_ = CheckpointSample();
  sample_.momentum[7] = std::nanf("");
  const CommandOutcome solver = Ckpt({"verify", Save("s.h5")});
  EXPECT_EQ(solver.code, 6);
  EXPECT_THAT(solver.out, HasSubstr("s.h5: 1 of its solver's numbers are NaN or infinite\n"));
}

// In a file without a seal only reading the vectors shows the damage.
TEST_F(CkptCommand, VerifyReadsTheSolversVectors) {
  std::string bytes = Slurp(DTRAIN_SOURCE_DIR "/tests/checkpoint/without_seal.h5");
  const std::string of_ip1(reinterpret_cast<const char*>(sample_.momentum.data() + 3), 24 * 4);
  bytes.at(bytes.find(of_ip1) + 5) ^= 1;
  Spit(folder_ / "old.h5", bytes);
  const CommandOutcome outcome = Ckpt({"verify", (folder_ / "old.h5").string()});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_THAT(outcome.out, HasSubstr("/solver/momentum/ip1.weight"));
  EXPECT_EQ(Ckpt({"info", (folder_ / "old.h5").string()}).code, 0);
}

TEST_F(CkptCommand, VerifyTakesEveryCheckpointOfARun) {
  const std::string older = Save("run/checkpoints/step-00000010.h5");
  const std::string newer = SaveDamaged("run/checkpoints/step-00000020.h5");
  Spit(folder_ / "run" / "checkpoints" / "latest", "step-00000010.h5\n");
  const CommandOutcome outcome = Ckpt({"verify", (folder_ / "run").string()});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr(older + ": ok\n"), HasSubstr(newer + " is damaged: ")));
  Save("run/checkpoints/step-00000020.h5");
  EXPECT_EQ(Ckpt({"verify", (folder_ / "run").string()}).code, 0);
  EXPECT_EQ(json::parse(Ckpt({"info", (folder_ / "run").string(), "--json"}).out)["file"], older);
  fs::create_directories(folder_ / "empty");
  EXPECT_EQ(Ckpt({"verify", (folder_ / "empty").string()}).code, 6);
}

// A run that keeps its best weights has two files that a user may take, and both are checked.
TEST_F(CkptCommand, TheBestWeightsOfARunAreSeenToo) {
  const std::string run = (folder_ / "run").string();
  const std::string last = Save("run/checkpoints/step-00000020.h5");
  EXPECT_THAT(Ckpt({"info", run}).out, Not(HasSubstr("used_by")));
  sample_.info.position.step = 10;
  sample_.info.plan_json.clear();  // the file has weights only
  const std::string best = Save("run/checkpoints/best.h5");
  const CommandOutcome text = Ckpt({"info", run});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("file             " + last + "\n"),
                              HasSubstr("used_by          --resume\n"),
                              HasSubstr("\n\nfile             " + best + "\n"),
                              HasSubstr("used_by          predict, translate, eval, export, ")));
  const json info = json::parse(Ckpt({"info", run, "--json"}).out);
  EXPECT_EQ(info["step"], 1832);
  EXPECT_EQ(info["best"]["step"], 10);
  EXPECT_EQ(json::parse(Ckpt({"info", best, "--json"}).out)["step"], 10);
  EXPECT_EQ(Ckpt({"verify", run}).out, last + ": ok\n" + best + ": ok\n");
  SaveDamaged("run/checkpoints/best.h5");
  const CommandOutcome damaged = Ckpt({"verify", run});
  EXPECT_EQ(damaged.code, 6);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr(last + ": ok\n"), HasSubstr(best + " is damaged: ")));
}

TEST_F(CkptCommand, DiffOfEqualWeightsIsEmpty) {
  const std::string path = Save("a.h5");
  sample_.momentum[0] = 3;  // momentum is not compared as a weight
  const CommandOutcome text = Ckpt({"diff", path, Save("b.h5")});
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.out, "equal to the bit\n");
  const CommandOutcome outcome = Ckpt({"diff", path, path, "--json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(json::parse(outcome.out), (json{{"equal", true}, {"tensors", json::array()}}));
}

TEST_F(CkptCommand, DiffTellsWhatDiffers) {
  sample_.weights.assign(sample_.weights.size(), 1);
  const std::string path = Save("a.h5");
  sample_.weights[0] = 3;    // ip1.bias: 1, 1, 1 and 3, 1, 1
  sample_.state[1] = -0.0f;  // bn1.mean: 3, 4 and 3, -0
  const std::string other = Save("b.h5");
  const CommandOutcome text = Ckpt({"diff", path, other});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, AllOf(HasSubstr("1 differ, largest 2, relative 1.15\n"),
                              HasSubstr("1 differ, largest 4, relative 0.8\n"),
                              HasSubstr("2 of 6 tensors differ\n")));
  const CommandOutcome outcome = Ckpt({"diff", path, other, "--json"});
  EXPECT_EQ(outcome.code, 1);
  const json difference = IndentedJson(outcome.out);
  EXPECT_EQ(difference["equal"], false);
  ASSERT_EQ(difference["tensors"].size(), 2u);
  EXPECT_EQ(difference["tensors"][1]["name"], "ip1.bias");
  EXPECT_EQ(difference["tensors"][1]["elements"], 1);
  EXPECT_EQ(difference["tensors"][1]["largest"], 2.0);
  EXPECT_DOUBLE_EQ(difference["tensors"][1]["relative"].get<double>(), 2 / std::sqrt(3.0));
}

// A tensor of both models counts once.
TEST_F(CkptCommand, DiffOfOtherModelsCountsATensorOnce) {
  const std::string path = Save("a.h5");
  sample_.layout.parameters =
      LayoutOf({{"ip1.bias", {3}}, {"ip1.weight", {6, 4}}, {"scale", {}}, {"conv9.weight", {50}}});
  sample_.layout.state = {};
  const CommandOutcome outcome = Ckpt({"diff", path, Save("b.h5")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("only in the first file: [2, 1, 5, 5]\n"),
                    HasSubstr("only in the second file: [50]\n"), HasSubstr("[3, 8] and [6, 4]\n"),
                    HasSubstr("5 of 7 tensors differ\n")));
}

TEST_F(CkptCommand, DiffOfADamagedFileIsAnError) {
  const std::string path = Save("a.h5");
  const CommandOutcome outcome = Ckpt({"diff", path, SaveDamaged("b.h5")});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("b.h5 is damaged: "));
}

}  // namespace
}  // namespace dtrain
