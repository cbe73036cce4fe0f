// Letters from driver to driver: each kind reaches who handles it, as it was sent.
#include "framework/exchange/service.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dtrain {
namespace {

// To this rank itself.
Letter LetterOf(Post& post) {
  std::optional<Letter> letter = post.Next();
  EXPECT_TRUE(letter.has_value());
  return letter.value_or(Letter{});
}

TEST(Service, ALetterArrivesWithAllItsFields) {
  const std::vector<int> nodes;
  Post post(3, 4, nullptr, nodes);
  Service service(post);
  letter::Started heard;
  Rank heard_from = -1;
  service.On<letter::Started>([&](const letter::Started& letter, Rank from) {
    heard = letter;
    heard_from = from;
  });
  service.Send(3, letter::Started{7, {5, 0.25, 1, 0}});
  service.Deliver(LetterOf(post));
  EXPECT_EQ(heard_from, 3);
  EXPECT_EQ(heard.samples, 7);
  EXPECT_EQ(heard.before.samples, 5);
  EXPECT_EQ(heard.before.loss_sum, 0.25);
  EXPECT_EQ(heard.before.stop, 1);
  EXPECT_EQ(heard.before.finite, 0);
  // They are the machinery's, and count as none of the actors'.
  EXPECT_EQ(post.sent(), 0);
  EXPECT_EQ(post.received(), 0);
}

TEST(Service, TextAndNumbersArriveToTheBit) {
  const std::vector<int> nodes;
  Post post(0, 4, nullptr, nodes);
  Service service(post);
  for (const char* text : {"", "seven c", "eight ch", "nine char", "clocks 815 815 \xc3\xa9"}) {
    letter::Answer heard;
    service.On<letter::Answer>([&](const letter::Answer& letter, Rank) { heard = letter; });
    service.Send(0, letter::Answer{1, 7, text});
    service.Deliver(LetterOf(post));
    EXPECT_EQ(heard, (letter::Answer{1, 7, text}));
  }
  letter::SumOfAll heard;
  service.On<letter::SumOfAll>([&](const letter::SumOfAll& letter, Rank) { heard = letter; });
  service.Send(0, letter::SumOfAll{{0.1, -0.0, INFINITY}});
  service.Deliver(LetterOf(post));
  ASSERT_EQ(heard.values.size(), 3u);
  EXPECT_EQ(heard.values[0], 0.1);
  EXPECT_TRUE(std::signbit(heard.values[1]));
  EXPECT_EQ(heard.values[2], INFINITY);
}

TEST(ServiceDeathTest, ALetterThatNobodyHandlesStopsTheProgram) {
  const std::vector<int> nodes;
  Post post(2, 4, nullptr, nodes);
  Service service(post);
  service.On<letter::Ask>([](const letter::Ask&, Rank) {});
  service.Send(2, letter::Withhold{});
  EXPECT_DEATH(service.Deliver(LetterOf(post)),
               "rank 2 got a letter of kind 102 from rank 2, which nobody handles");
}

TEST(ServiceDeathTest, ALetterThatIsTooShortStopsTheProgram) {
  const std::vector<int> nodes;
  Post post(0, 4, nullptr, nodes);
  Service service(post);
  service.On<letter::Count>([](const letter::Count&, Rank) {});
  EXPECT_DEATH(service.Deliver({.message = {letter::Count::kKind, {}}}), "message ends");
}

}  // namespace
}  // namespace dtrain
