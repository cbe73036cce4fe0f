// Converts weights between the formats and loads them into a model.  The values are equal to the
// bit, or an error names every difference.
#include "framework/checkpoint/weights_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/checkpoint/checkpoint.h"
#include "framework/checkpoint/safetensors.h"
#include "framework/checkpoint/weights_compare.h"
#include "framework/core/sha256.h"
#include "framework/data/text/sentence_pairs.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A model with one batch normalisation, in backward order.
struct Sample : CheckpointSample {
  Sample() {
    layout = {LayoutOf({{"fc.bias", {3}}, {"fc.weight", {3, 8}}, {"conv1.weight", {2, 1, 5, 5}}}),
              LayoutOf({{"bn1.running_mean", {2}}, {"bn1.running_var", {2}}})};
    weights.resize(static_cast<size_t>(layout.parameters.size()));
    momentum = weights;
    weights[3] = -0.0f;
    weights[4] = std::numeric_limits<float>::denorm_min();
  }
};

class WeightsFiles : public ::testing::Test {
 protected:
  void SetUp() override { WriteCheckpoint(checkpoint_, sample_.View()); }

  std::filesystem::path Exported(WeightsFormat format) {
    const std::filesystem::path path = folder_ / ("exported." + NameOf(format));
    WriteStoredWeights(path, format, ReadStoredWeights(checkpoint_));
    return path;
  }

  // Returns a file as PyTorch saves it, without metadata, with `prefix` before every name except `except`.
  std::filesystem::path FromPyTorch(const std::string& prefix, const std::string& except = "") {
    std::vector<SafeTensorSource> tensors;
    const auto add = [&](const ArenaLayout& layout, const std::vector<float>& arena) {
      for (const ArenaEntry& entry : layout.entries) {
        const std::string name = entry.name == except ? entry.name : prefix + entry.name;
        tensors.push_back({name, "F32", entry.shape, arena.data() + entry.range.begin});
      }
    };
    static constexpr int64_t kBatches = 7;
    const std::string mean = sample_.layout.state.entries[0].name;
    const std::string layer = mean.substr(0, mean.rfind('.'));
    tensors.push_back({prefix + layer + ".num_batches_tracked", "I64", {}, &kBatches});
    add(sample_.layout.parameters, sample_.weights);
    add(sample_.layout.state, sample_.state);
    const std::filesystem::path path = folder_ / "pytorch.safetensors";
    WriteSafetensors(path, std::move(tensors), {});
    return path;
  }

  std::string MismatchOf(const ModelLayout& layout) {
    try {
      LoadWeights(Exported(WeightsFormat::kSafetensors), layout);
    } catch (const CheckpointMismatch& error) {
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  Sample sample_;
  std::filesystem::path folder_ = FreshFolder();
  std::filesystem::path checkpoint_ = folder_ / "step-00001832.h5";
};

TEST_F(WeightsFiles, OfTorchSaveComeWithTheLineThatConvertsThem) {
  const std::filesystem::path path = folder_ / "my model.pt";
  for (const std::string start : {"PK\x03\x04 archive", "\x80\x02\x8a pickle"}) {
    Spit(path, start);
    try {
      LoadWeights(path, sample_.layout);
      ADD_FAILURE() << "no error";
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), HasSubstr("torch.save"));
      EXPECT_THAT(error.hint(),
                  AllOf(HasSubstr("weights_only=True"), HasSubstr("my model.safetensors'"),
                        HasSubstr("for k, v in s.get('state_dict', s).items()}")));
    }
    EXPECT_THROW(ReadStoredWeights(path), CheckpointError);
    EXPECT_THROW(ReadStoredInfo(path), CheckpointError);
  }
}

TEST_F(WeightsFiles, KeepTheirBitsThroughEveryFormat) {
  const std::string hash =
      WeightsSha256(sample_.layout, sample_.weights.data(), sample_.state.data());
  for (const WeightsFormat format : {WeightsFormat::kSafetensors, WeightsFormat::kHdf5}) {
    const std::filesystem::path path = Exported(format);
    const StoredWeights stored = ReadStoredWeights(path);
    EXPECT_EQ(stored.format, format);
    EXPECT_EQ(stored.info.model, "lenet5");
    EXPECT_EQ(stored.info.position, sample_.info.position);
    EXPECT_EQ(WeightsSha256(stored.layout, stored.weights.data(), stored.state.data()), hash);
    const Checkpoint read = LoadWeights(path, sample_.layout);
    EXPECT_TRUE(SameBits(read.weights, sample_.weights));
    EXPECT_TRUE(SameBits(read.state, sample_.state));
  }
}

TEST_F(WeightsFiles, SafetensorsHaveWhatLoadStateDictWants) {
  const SafetensorsReader in(Exported(WeightsFormat::kSafetensors));
  EXPECT_EQ(in.entries().size(), 6u);
  ASSERT_NE(in.Find("bn1.num_batches_tracked"), nullptr);
  int32_t count = 0;
  in.ReadInts(*in.Find("bn1.num_batches_tracked"), &count);
  EXPECT_EQ(count, 1832);
  EXPECT_EQ(in.Find("bn1.num_batches_tracked")->dtype, "I64");
  EXPECT_EQ(in.metadata().at("format"), "pt");
}

TEST_F(WeightsFiles, AnExportIsNoRunToGoOnWith) {
  try {
    ReadCheckpoint(Exported(WeightsFormat::kHdf5), sample_.layout);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds weights alone"));
    EXPECT_THAT(error.hint(), HasSubstr("--weights"));
  }
}

TEST_F(WeightsFiles, EveryDifferenceFromTheModelIsNamed) {
  ModelLayout other{
      LayoutOf({{"fc.bias", {3}}, {"fc.weight", {4, 8}}, {"conv_1.weight", {2, 1, 5, 5}}}),
      LayoutOf({{"bn1.running_mean", {2}}, {"bn1.running_var", {2}}, {"bn2.running_var", {2}}})};
  const std::string what = MismatchOf(other);
  EXPECT_THAT(what, HasSubstr("it lacks 'conv_1.weight' [2, 1, 5, 5]"));
  EXPECT_THAT(what, HasSubstr("it lacks 'bn2.running_var' [2]"));
  EXPECT_THAT(what, HasSubstr("'fc.weight' is [3, 8] there and [4, 8] here"));
  EXPECT_THAT(what, HasSubstr("it has 'conv1.weight' [2, 1, 5, 5], which this model lacks; "
                              "did you mean 'conv_1.weight'?"));
  EXPECT_THAT(what, Not(HasSubstr("num_batches_tracked")));
}

// Such a copy is used to train another head on the same features.
TEST_F(WeightsFiles, LayersThatAreLeftOutKeepWhatTheyHave) {
  const ModelLayout other{
      LayoutOf({{"fc.bias", {5}}, {"fc.weight", {5, 8}}, {"conv1.weight", {2, 1, 5, 5}}}),
      LayoutOf({{"bn1.running_mean", {2}}, {"bn1.running_var", {2}}})};
  for (const auto& path : {checkpoint_, Exported(WeightsFormat::kSafetensors)}) {
    std::vector<float> weights(static_cast<size_t>(other.parameters.size()), 7);
    std::vector<float> state(4, 7);
    EXPECT_EQ(CopyWeights(path, other, {"f?"}, weights.data(), state.data()), 45);
    for (int64_t i = 0; i < 45; ++i) EXPECT_EQ(weights[i], 7) << i;
    for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(weights[45 + i], sample_.weights[27 + i]) << i;
    EXPECT_EQ(state, sample_.state);
    EXPECT_EQ(CopyWeights(path, other, {"fc", "bn*"}, weights.data(), state.data()), 49);
    EXPECT_THAT(MessageOf<CheckpointMismatch>(
                    [&] { CopyWeights(path, other, {"conv1"}, weights.data(), state.data()); }),
                AllOf(HasSubstr("'fc.weight' is [3, 8] there and [5, 8] here"),
                      HasSubstr("'fc.bias' is [3] there and [5] here"), HasSubstr("weights.except"),
                      Not(HasSubstr("conv1.weight"))));
  }
}

TEST_F(WeightsFiles, LayersOfTheFileThatTheModelLacksAreLeftOutByNameOnly) {
  const ModelLayout other{LayoutOf({{"conv1.weight", {2, 1, 5, 5}}}), LayoutOf({})};
  std::vector<float> weights(50);
  EXPECT_EQ(CopyWeights(checkpoint_, other, {"fc", "bn1"}, weights.data(), nullptr), 0);
  EXPECT_EQ(weights[10], sample_.weights[37]);
  EXPECT_THAT(MessageOf<CheckpointMismatch>(
                  [&] { CopyWeights(checkpoint_, other, {"fc"}, weights.data(), nullptr); }),
              HasSubstr("it has 'bn1.running_mean' [2], which this model lacks"));
}

TEST_F(WeightsFiles, WhatLooksLikeNeitherFormatIsAnError) {
  Spit(folder_ / "w.bin", "something else, longer than a header");
  EXPECT_THROW(ReadStoredWeights(folder_ / "w.bin"), CheckpointError);
  EXPECT_THROW(LoadWeights(folder_ / "none.safetensors", sample_.layout), CheckpointError);
}

TEST_F(WeightsFiles, CompareByName) {
  sample_.weights[4] = std::nanf("");
  WriteCheckpoint(checkpoint_, sample_.View());
  const StoredWeights a = ReadStoredWeights(checkpoint_);
  EXPECT_TRUE(Compare(a, a).empty());  // NaN equals the same NaN here
  EXPECT_EQ(CountNonFinite(a).weights, 1);
  EXPECT_EQ(CountNonFinite(a).solver, 0);
  StoredWeights b = a;
  for (const ArenaEntry& entry : b.layout.parameters.entries) {
    if (entry.name == "fc.bias") b.weights[entry.range.begin + 1] += 0.5f;
  }
  b.layout.state.entries[1].name = "bn9.running_var";
  const std::vector<TensorDifference> differences = Compare(a, b);
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].name, "bn1.running_var");
  EXPECT_THAT(differences[0].what, HasSubstr("only in the first"));
  EXPECT_THAT(differences[1].what, HasSubstr("only in the second"));
  EXPECT_EQ(differences[2].name, "fc.bias");
  EXPECT_EQ(differences[2].elements, 1);
  EXPECT_NEAR(differences[2].largest, 0.5, 1e-6);
  EXPECT_EQ(CountTensors(a, b), 6);  // each has five; four names are in both
}

// The distance between a number and a NaN or infinity is infinite.
TEST_F(WeightsFiles, CompareCountsNoNumberAsInfinitelyFar) {
  StoredWeights a = ReadStoredWeights(checkpoint_);
  a.weights.assign(a.weights.size(), 1.0f);
  for (const float other : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    StoredWeights b = a;
    b.weights[0] = other;
    for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
      const std::vector<TensorDifference> differences = Compare(x, y);
      ASSERT_EQ(differences.size(), 1u) << other;
      EXPECT_EQ(differences[0].name, "fc.bias");
      EXPECT_EQ(differences[0].elements, 1);
      EXPECT_EQ(differences[0].largest, std::numeric_limits<double>::infinity());
    }
  }
}

TEST_F(WeightsFiles, CompareSaysHowLargeADifferenceIs) {
  StoredWeights a = ReadStoredWeights(checkpoint_);
  a.weights.assign(a.weights.size(), 2.0f);
  StoredWeights b = a;
  b.weights[0] = 1.5f;  // in fc.bias, which has 3 values
  b.weights[1] = 2.25f;
  const std::vector<TensorDifference> differences = Compare(a, b);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].elements, 2);
  EXPECT_EQ(differences[0].largest, 0.5);
  EXPECT_DOUBLE_EQ(differences[0].relative, std::sqrt((0.25 + 0.0625) / 12));
  a.weights[2] = b.weights[2] = 3.0f;
  EXPECT_DOUBLE_EQ(Compare(a, b).at(0).relative, std::sqrt((0.25 + 0.0625) / 17));
  // 0 and -0 differ in their bits, but their distance is 0, also relative to a norm of 0.
  a.weights.assign(a.weights.size(), 0.0f);
  b = a;
  b.weights[0] = -0.0f;
  EXPECT_EQ(Compare(a, b).at(0).elements, 1);
  EXPECT_EQ(Compare(a, b).at(0).relative, 0);
}

TEST_F(WeightsFiles, EverySolverVectorIsCounted) {
  StoredWeights stored = ReadStoredWeights(checkpoint_);
  stored.solver.clear();
  stored.solver["first"].assign(2, std::nanf(""));
  stored.solver["second"].assign(3, std::nanf(""));
  EXPECT_EQ(CountNonFinite(stored).solver, 5);
}

TEST_F(WeightsFiles, TheTextIsExportedWhereThereIsOne) {
  const SafetensorsReader without(Exported(WeightsFormat::kSafetensors));
  EXPECT_FALSE(without.metadata().contains("text"));
  StoredWeights stored = ReadStoredWeights(checkpoint_);
  stored.info.text = "de\nen\n";
  WriteStoredWeights(folder_ / "text.safetensors", WeightsFormat::kSafetensors, stored);
  EXPECT_EQ(ReadStoredWeights(folder_ / "text.safetensors").info.text, "de\nen\n");
}

TEST_F(WeightsFiles, AnExportKnowsItsVocabularies) {
  TextInfo info;
  info.source = Vocabulary::Of({{"a", "b"}}, 1);
  StoredWeights stored = ReadStoredWeights(checkpoint_);
  stored.info.text = info.ToText();
  const std::filesystem::path path = folder_ / "text.safetensors";
  WriteStoredWeights(path, WeightsFormat::kSafetensors, stored);
  sample_.layout.text = info.ToText();
  EXPECT_NO_THROW(LoadWeights(path, sample_.layout));
  info.source = Vocabulary::Of({{"a", "c", "d"}}, 1);
  sample_.layout.text = info.ToText();
  EXPECT_THROW(LoadWeights(path, sample_.layout), CheckpointMismatch);
  // A file of another program has no vocabulary, so it is not compared.
  EXPECT_NO_THROW(LoadWeights(Exported(WeightsFormat::kSafetensors), sample_.layout));
}

TEST_F(WeightsFiles, AFileOfAnotherProgramBeginsAtStepZero) {
  const float x = 1;
  WriteSafetensors(folder_ / "x.safetensors", {{"x", "F32", {1}, &x}}, {});
  EXPECT_EQ(ReadStoredInfo(folder_ / "x.safetensors").position, TrainingPosition{});
}

// DistributedDataParallel and torch.compile put a prefix before every name.
TEST_F(WeightsFiles, PrefixesOfPyTorchsWrappersAreLeftOut) {
  for (const std::string prefix :
       {"module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."}) {
    SCOPED_TRACE(prefix);
    const std::filesystem::path path = FromPyTorch(prefix);
    ::testing::internal::CaptureStderr();
    const Checkpoint read = LoadWeights(path, sample_.layout);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("pytorch.safetensors: all names begin with '" + prefix + "'"));
    EXPECT_EQ(std::ranges::count(said, '\n'), 1);
    EXPECT_TRUE(SameBits(read.weights, sample_.weights));
    EXPECT_TRUE(SameBits(read.state, sample_.state));
    std::vector<float> weights(sample_.weights.size()), state(sample_.state.size());
    EXPECT_EQ(CopyWeights(path, sample_.layout, {"fc"}, weights.data(), state.data()), 27);
    EXPECT_EQ(weights[27], sample_.weights[27]);
    EXPECT_TRUE(Compare(ReadStoredWeights(path), ReadStoredWeights(checkpoint_)).empty());
  }
}

TEST_F(WeightsFiles, APrefixThatOneNameLacksStays) {
  const std::filesystem::path path = FromPyTorch("module.", "fc.bias");
  EXPECT_THAT(MessageOf<CheckpointMismatch>([&] { LoadWeights(path, sample_.layout); }),
              HasSubstr("it has 'module.fc.weight' [3, 8], which this model lacks"));
  EXPECT_EQ(ReadStoredWeights(path).layout.parameters.entries.back().name, "module.fc.weight");
}

TEST_F(WeightsFiles, AModelWhoseOwnNamesBeginSoKeepsThem) {
  for (ArenaLayout* layout : {&sample_.layout.parameters, &sample_.layout.state}) {
    for (ArenaEntry& entry : layout->entries) entry.name = "module." + entry.name;
  }
  WriteCheckpoint(checkpoint_, sample_.View());
  for (const auto& path : {FromPyTorch(""), Exported(WeightsFormat::kSafetensors)}) {
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(SameBits(LoadWeights(path, sample_.layout).weights, sample_.weights));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
  const StoredWeights stored = ReadStoredWeights(Exported(WeightsFormat::kSafetensors));
  EXPECT_TRUE(Compare(stored, ReadStoredWeights(checkpoint_)).empty());
}

TEST_F(WeightsFiles, WeightsOfADivergedRunAreRefused) {
  sample_.weights[3] = std::nanf("");
  sample_.state[1] = std::numeric_limits<float>::infinity();
  WriteCheckpoint(checkpoint_, sample_.View());
  for (const auto& path : {checkpoint_, Exported(WeightsFormat::kSafetensors)}) {
    const std::string error = WhatOf<CheckpointError>([&] { LoadWeights(path, sample_.layout); });
    EXPECT_THAT(error, HasSubstr("2 of its weights are NaN or infinite"));
  }
}

TEST_F(WeightsFiles, NumbersThatAreNoneAreCountedEverywhere) {
  sample_.weights[4] = std::nanf("");
  sample_.state[1] = std::numeric_limits<float>::infinity();
  sample_.momentum[5] = std::nanf("");
  sample_.momentum[6] = -std::numeric_limits<float>::infinity();
  WriteCheckpoint(checkpoint_, sample_.View());
  const NonFinite found = CountNonFinite(ReadStoredWeights(checkpoint_, CheckpointPart::kAll));
  EXPECT_EQ(found.weights, 2);
  EXPECT_EQ(found.solver, 2);
}

// Computes the hashes of an exported file as its header comments describe.
TEST_F(WeightsFiles, SafetensorsCarryTheirHashes) {
  const std::filesystem::path path = Exported(WeightsFormat::kSafetensors);
  std::string file = Slurp(path);
  const std::string key = "\"file_sha256\":\"";
  const size_t at = file.find(key) + key.size();
  const std::string digits = file.substr(at, 64);
  file.replace(at, 64, std::string(64, '0'));
  EXPECT_EQ(Sha256::Of(file), digits);
  std::string in_name_order;
  const auto add = [&](const std::vector<float>& arena, int64_t begin, int64_t count) {
    in_name_order.append(reinterpret_cast<const char*>(arena.data() + begin), 4 * count);
  };
  add(sample_.state, 0, 2);      // bn1.running_mean
  add(sample_.state, 2, 2);      // bn1.running_var
  add(sample_.weights, 27, 50);  // conv1.weight
  add(sample_.weights, 0, 3);    // fc.bias
  add(sample_.weights, 3, 24);   // fc.weight
  EXPECT_EQ(SafetensorsReader(path).metadata().at("weights_sha256"), Sha256::Of(in_name_order));
}

// PyTorch may save changed weights together with our old metadata and its hashes.
TEST_F(WeightsFiles, HashesOfOtherWeightsAreRefused) {
  const float changed = 2.5f;
  const std::filesystem::path path = folder_ / "w.safetensors";
  const auto error = [&](std::map<std::string, std::string> metadata) {
    WriteSafetensors(path, {{"x", "F32", {1}, &changed}}, std::move(metadata));
    const std::string what = MessageOf<CheckpointError>([&] { ReadStoredWeights(path); });
    EXPECT_THROW(ReadStoredInfo(path), CheckpointError);
    EXPECT_THROW(LoadWeights(path, {LayoutOf({{"x", {1}}}), {}}), CheckpointError);
    return what;
  };
  const std::string of_changed =
      Sha256::Of({reinterpret_cast<const char*>(&changed), sizeof(changed)});
  const std::string old = Sha256::Of("other weights");
  EXPECT_THAT(error({{"file_sha256", ""}, {"weights_sha256", old}}),
              AllOf(HasSubstr("w.safetensors is damaged: its weights_sha256 is \"" + old + "\""),
                    HasSubstr("leave file_sha256 and weights_sha256 out of the metadata")));
  EXPECT_THAT(error({{"weights_sha256", of_changed}}),
              HasSubstr("its metadata has weights_sha256 without file_sha256"));
  EXPECT_THAT(error({{"file_sha256", ""}}),
              HasSubstr("its metadata has file_sha256 without weights_sha256"));
  WriteSafetensors(path, {{"x", "F32", {1}, &changed}},
                   {{"file_sha256", ""}, {"weights_sha256", of_changed}});
  EXPECT_EQ(ReadStoredWeights(path).weights, std::vector<float>{2.5f});
  WriteSafetensors(path, {{"x", "F32", {1}, &changed}}, {});
  EXPECT_EQ(ReadStoredWeights(path).weights, std::vector<float>{2.5f});
}

TEST_F(WeightsFiles, AFlippedByteOfAnExportIsFound) {
  const std::string good = Slurp(Exported(WeightsFormat::kSafetensors));
  const std::filesystem::path path = folder_ / "bad.safetensors";
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    Spit(path, bad);
    EXPECT_THROW(ReadStoredWeights(path), CheckpointError) << "byte " << at;
  }
}

}  // namespace
}  // namespace dtrain
