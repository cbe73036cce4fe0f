// Tests the records of GradientStatistics against plain loops in double precision, alone and during an exchange.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/gradient_statistics.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "tests/exchange/exchange_fixture.h"

namespace dtrain {
namespace {

class Notes : public GradientStatistics::Sink {
 public:
  void BeginBehind(int64_t steps) override { begun = steps; }
  void Write(const GradientRecord& record) override { records.push_back(record); }
  int64_t begun = -1;
  std::vector<GradientRecord> records;
};

double Squares(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

// Returns the sum of squares of all but the k largest values, from a full sort.
double SquaresBehindLargest(std::vector<float> values, int64_t k) {
  std::sort(values.begin(), values.end(),
            [](float a, float b) { return std::abs(a) > std::abs(b); });
  values.erase(values.begin(), values.begin() + std::min<int64_t>(k, std::ssize(values)));
  return Squares(values);
}

// Counts of values by the exponent of 2 of their magnitude; negative and other values are counted apart.
using Counts = std::map<int, int64_t>;

Counts CountsOf(const std::vector<float>& values, bool negative) {
  Counts counts;
  for (const float value : values) {
    if (value == 0 || std::signbit(value) != negative) continue;
    int above = 0;
    std::frexp(value, &above);  // 2^(above - 1) <= |value| < 2^above
    ++counts[above - 1];
  }
  return counts;
}

Counts CountsOf(const std::array<int64_t, MagnitudeHistogram::kBins>& bins) {
  Counts counts;
  for (int bin = 1; bin < MagnitudeHistogram::kBins - 1; ++bin) {
    if (bins[bin] > 0) counts[bin - 127] = bins[bin];
  }
  return counts;
}

void ExpectIsOf(const std::vector<float>& values, const MagnitudeHistogram& histogram) {
  EXPECT_EQ(CountsOf(histogram.negative), CountsOf(values, true));
  EXPECT_EQ(CountsOf(histogram.positive), CountsOf(values, false));
  EXPECT_EQ(histogram.negative[0] + histogram.positive[0],
            std::count(values.begin(), values.end(), 0.0F));
  EXPECT_NEAR(histogram.squares, Squares(values), 1e-12 * Squares(values));
}

std::vector<float> Part(const std::vector<float>& values, Range range) {
  return {values.begin() + range.begin, values.begin() + range.end};
}

TEST(MagnitudeHistogram, CountsByPowersOfTwo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0F,  -0.0F, 1.0F,   1.999F, 2.0F,      -0.5F,
                                     0.75F, 3e38F, 1e-37F, NAN,    -kInfinity};
  MagnitudeHistogram histogram;
  histogram.Add(values.data(), std::ssize(values));
  EXPECT_EQ(CountsOf(histogram.positive), (Counts{{-123, 1}, {-1, 1}, {0, 2}, {1, 1}, {127, 1}}));
  EXPECT_EQ(CountsOf(histogram.negative), (Counts{{-1, 1}}));
  EXPECT_EQ(histogram.positive[0] + histogram.negative[0], 2);
  EXPECT_EQ(histogram.positive[255] + histogram.negative[255], 2);
}

TEST(GradientStatistics, LooksAtEveryNthStepAlsoBehindAResume) {
  Notes notes;
  GradientStatistics statistics(3, notes);
  statistics.BeginBehind(4);
  EXPECT_EQ(notes.begun, 4);
  std::vector<int64_t> looked_at;
  for (int64_t step = 5; step <= 12; ++step) {
    if (statistics.due()) looked_at.push_back(step);
    statistics.EndStep();
  }
  EXPECT_EQ(looked_at, (std::vector<int64_t>{6, 9, 12}));
}

TEST(GradientStatistics, RangesOfAStepMakeOneRecord) {
  Notes notes;
  GradientStatistics statistics(1, notes);
  const std::vector<float> values = {1, 2, 3, 4};
  for (int step = 0; step < 2; ++step) {
    statistics.SentWhole({0, 3}, values.data(), false);
    statistics.SentWhole({3, 4}, values.data() + 3, true);
    statistics.EndStep();
  }
  ASSERT_EQ(notes.records.size(), 2U);
  EXPECT_EQ(notes.records[1].step, 2);
  EXPECT_EQ(notes.records[1].range, (Range{0, 4}));
  EXPECT_EQ(notes.records[1].gradient.squares, 30);
  EXPECT_FALSE(notes.records[1].selection.has_value());
}

TEST(GradientStatistics, SaysNothingAboutSharesOfZeroOrOfWhatIsNotFinite) {
  for (const float value : {0.0F, std::numeric_limits<float>::infinity()}) {
    Notes notes;
    GradientStatistics statistics(1, notes);
    const std::vector<float> values = {value, 0, 0, 0};
    statistics.BeginUnit({0, 4}, values.data(), values.data());
    statistics.Kept(values.data(), 4, 0);
    statistics.EndUnit(0.25, 1);
    EXPECT_TRUE(std::isnan(notes.records.at(0).selection->error));
    EXPECT_TRUE(std::isnan(notes.records.at(0).selection->error_of_largest));
  }
}

// Checks one unit of one step against a plain loop: `u` is the input of the selection and becomes the residual.
void ExpectRecord(const GradientRecord& record, const CompressConfig& compress, int step,
                  std::vector<float>& u) {
  const Range unit = record.range;
  std::vector<float> gradient;
  for (int64_t i = unit.begin; i < unit.end; ++i) gradient.push_back(Gradient(0, step, i));
  const std::vector<float> from = Part(u, unit);
  EXPECT_EQ(record.step, step + 1);
  ExpectIsOf(gradient, record.gradient);
  ASSERT_TRUE(record.selection.has_value());
  ExpectIsOf(from, record.selection->from);
  const std::vector<int32_t> taken = SelectFrom(*compress.compressor, from, compress.density, {});
  for (const int32_t place : taken) u[static_cast<size_t>(unit.begin + place)] = 0;
  const double all = Squares(from);
  const auto k = static_cast<int64_t>(std::floor(compress.density * unit.size() + 1e-6));
  EXPECT_EQ(record.selection->asked, std::max<int64_t>(k, 1));
  EXPECT_EQ(record.selection->selected, std::ssize(taken));
  EXPECT_NEAR(record.selection->error, Squares(Part(u, unit)) / all, 1e-12);
  EXPECT_NEAR(record.selection->error_of_largest,
              SquaresBehindLargest(from, record.selection->asked) / all, 1e-12);
}

struct StudyCase {
  std::string strategy, compress;
  size_t units;
};

void PrintTo(const StudyCase& one, std::ostream* out) {
  *out << one.strategy << " " << one.compress;
}

// Returns 3, or 1 for a strategy with servers: with several workers a server must stay as long as one of them needs it.
int RanksFor(const Strategy& strategy) { return strategy.Place(1).servers > 0 ? 1 : 3; }

class StudiedExchangeTest : public testing::TestWithParam<StudyCase> {};

TEST_P(StudiedExchangeTest, TellsOfEveryUnitOfWorkerZero) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy(GetParam().strategy);
  const int ranks = RanksFor(*strategy);
  const CompressConfig compress = MakeCompress(GetParam().compress);
  Notes notes;
  LocalWorld::Run(ranks, [&](Transport& transport) {
    RankInputs inputs(*strategy, strategy->Place(ranks), 0);
    inputs.spec.actors.compress = compress;
    GradientStatistics statistics(2, notes);
    if (transport.rank() == 0) inputs.spec.statistics = &statistics;
    ThreadedExchange exchange(transport, inputs.spec, 0);
    for (int step = 0; step < kSteps; ++step) RunStep(exchange, transport.rank(), step);
  });
  ASSERT_EQ(notes.records.size(), GetParam().units * kSteps / 2);
  std::vector<float> u(static_cast<size_t>(kLayout.size()));
  auto record = notes.records.begin();
  for (int step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < u.size(); ++i) u[i] += Gradient(0, step, static_cast<int64_t>(i));
    int64_t covered = 0;
    for (size_t unit = 0; unit < GetParam().units; ++unit) {
      // This step is not recorded; the loop makes the same selection itself.
      const Range range = notes.records[unit].range;
      ASSERT_EQ(range.begin, covered);
      covered = range.end;
      if (step % 2 == 1) {
        ASSERT_EQ(record->range, range);
        ExpectRecord(*record++, compress, step, u);
        continue;
      }
      for (const int32_t place :
           SelectFrom(*compress.compressor, Part(u, range), compress.density, {})) {
        u[static_cast<size_t>(range.begin + place)] = 0;
      }
    }
    EXPECT_EQ(covered, kLayout.size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Exchanges, StudiedExchangeTest,
    testing::Values(StudyCase{"{name: allreduce}", "{name: topk, density: 0.01}", 1},
                    StudyCase{"{name: allreduce}", "{name: topk, density: 0.01, scope: layer}", 4},
                    StudyCase{"{name: wfbp}", "{name: trimmed, density: 0.01}", 4},
                    StudyCase{"{name: ps_asp, placement: colocated}",
                              "{name: topk, density: 0.02, scope: layer}", 4}));

// Without a compressor the statistics are of the gradient as the worker sends it.
class DenseStudyTest : public testing::TestWithParam<StudyCase> {};

TEST_P(DenseStudyTest, TellsOfTheWholeGradient) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy(GetParam().strategy);
  Notes notes;
  const int ranks = RanksFor(*strategy);
  LocalWorld::Run(ranks, [&](Transport& transport) {
    RankInputs inputs(*strategy, strategy->Place(ranks), 0);
    if (!GetParam().compress.empty()) {
      inputs.spec.actors.compress = MakeCompress(GetParam().compress);
    }
    GradientStatistics statistics(1, notes);
    if (transport.rank() == 0) inputs.spec.statistics = &statistics;
    ThreadedExchange exchange(transport, inputs.spec, 0);
    for (int step = 0; step < kSteps; ++step) RunStep(exchange, transport.rank(), step);
  });
  ASSERT_EQ(notes.records.size(), static_cast<size_t>(kSteps));
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> gradient;
    for (int64_t i = 0; i < kLayout.size(); ++i) gradient.push_back(Gradient(0, step, i));
    EXPECT_EQ(notes.records[step].step, step + 1);
    EXPECT_EQ(notes.records[step].range, (Range{0, kLayout.size()}));
    EXPECT_FALSE(notes.records[step].selection.has_value());
    ExpectIsOf(gradient, notes.records[step].gradient);
  }
}

INSTANTIATE_TEST_SUITE_P(Exchanges, DenseStudyTest,
                         testing::Values(StudyCase{"{name: wfbp}", "", 0},
                                         StudyCase{"{name: ps_bsp, placement: colocated}", "", 0},
                                         StudyCase{"{name: allreduce}", "{name: topk, density: 1}",
                                                   0},
                                         StudyCase{"{name: ps_asp, placement: colocated}",
                                                   "{name: topk, density: 1}", 0}));

}  // namespace
}  // namespace dtrain
