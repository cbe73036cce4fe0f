// Tests messages from driver to driver: each kind reaches its handler unchanged.
#include "framework/exchange/service.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dtrain {
namespace {

// Receives the next message that this rank sent to itself.
Envelope EnvelopeOf(Mailbox& mailbox) {
  std::optional<Envelope> envelope = mailbox.Next();
  EXPECT_TRUE(envelope.has_value());
  return envelope.value_or(Envelope{});
}

TEST(Service, AMessageArrivesWithAllItsFields) {
  const std::vector<int> nodes;
  Mailbox mailbox(3, 4, nullptr, nodes);
  Service service(mailbox);
  control::Started heard;
  Rank heard_from = -1;
  service.On<control::Started>([&](const control::Started& envelope, Rank from) {
    heard = envelope;
    heard_from = from;
  });
  service.Send(3, control::Started{7, {5, 0.25, 1, 0}});
  service.Deliver(EnvelopeOf(mailbox));
  EXPECT_EQ(heard_from, 3);
  EXPECT_EQ(heard.samples, 7);
  EXPECT_EQ(heard.before.samples, 5);
  EXPECT_EQ(heard.before.loss_sum, 0.25);
  EXPECT_EQ(heard.before.stop, 1);
  EXPECT_EQ(heard.before.finite, 0);
  // Driver messages are not counted as messages of actors.
  EXPECT_EQ(mailbox.sent(), 0);
  EXPECT_EQ(mailbox.received(), 0);
}

TEST(Service, TextAndNumbersArriveToTheBit) {
  const std::vector<int> nodes;
  Mailbox mailbox(0, 4, nullptr, nodes);
  Service service(mailbox);
  for (const char* text : {"", "seven c", "eight ch", "nine char", "clocks 815 815 \xc3\xa9"}) {
    control::Answer heard;
    service.On<control::Answer>([&](const control::Answer& envelope, Rank) { heard = envelope; });
    service.Send(0, control::Answer{1, 7, text});
    service.Deliver(EnvelopeOf(mailbox));
    EXPECT_EQ(heard, (control::Answer{1, 7, text}));
  }
  control::SumOfAll heard;
  service.On<control::SumOfAll>([&](const control::SumOfAll& envelope, Rank) { heard = envelope; });
  service.Send(0, control::SumOfAll{{0.1, -0.0, INFINITY}});
  service.Deliver(EnvelopeOf(mailbox));
  ASSERT_EQ(heard.values.size(), 3u);
  EXPECT_EQ(heard.values[0], 0.1);
  EXPECT_TRUE(std::signbit(heard.values[1]));
  EXPECT_EQ(heard.values[2], INFINITY);
}

TEST(ServiceDeathTest, AMessageThatNobodyHandlesStopsTheProgram) {
  const std::vector<int> nodes;
  Mailbox mailbox(2, 4, nullptr, nodes);
  Service service(mailbox);
  service.On<control::Ask>([](const control::Ask&, Rank) {});
  service.Send(2, control::Hold{});
  EXPECT_DEATH(service.Deliver(EnvelopeOf(mailbox)),
               "rank 2 got a message of kind 102 from rank 2, which has no handler");
}

TEST(ServiceDeathTest, AMessageThatIsTooShortStopsTheProgram) {
  const std::vector<int> nodes;
  Mailbox mailbox(0, 4, nullptr, nodes);
  Service service(mailbox);
  service.On<control::Count>([](const control::Count&, Rank) {});
  EXPECT_DEATH(service.Deliver({.message = {control::Count::kKind, {}}}), "message ends");
}

}  // namespace
}  // namespace dtrain
