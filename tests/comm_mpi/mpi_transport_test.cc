#include <gtest/gtest.h>
#include <signal.h>

#include "tests/comm/transport_conformance.h"
#include "tests/comm_mpi/mpi_fixture.h"

namespace dtrain {
namespace {

class MpiTransportTest : public ::testing::TestWithParam<TransportScenario> {};

TEST_P(MpiTransportTest, Conforms) { GetParam().body(SharedTransport()); }

// Lowers the size from which derived types are used (2 GiB otherwise), so that ordinary messages exceed it.
TEST_P(MpiTransportTest, ConformsWithDerivedTypes) {
  const auto transport = SharedRuntime().MakeTransport({.plain_bytes_max = 1000});
  GetParam().body(*transport);
}

INSTANTIATE_TEST_SUITE_P(Conformance, MpiTransportTest, ::testing::ValuesIn(TransportScenarios()),
                         [](const auto& info) { return info.param.name; });

TEST(MpiTransport, MixesPlainAndDerivedMessages) {
  // A probe must return the true size of a message that was sent as a derived type.
  const auto transport = SharedRuntime().MakeTransport({.plain_bytes_max = 64});
  if (transport->size() < 2) GTEST_SKIP() << "needs two ranks";
  if (transport->rank() == 1) {
    const std::vector<int> out(1001, 5);
    Await(*transport, transport->Send(0, Tag::kControl, BytesOf(out)));
  }
  if (transport->rank() == 0) {
    const Incoming incoming = AwaitMessage(*transport, Tag::kControl);
    EXPECT_EQ(incoming.bytes, 1001 * sizeof(int));
    std::vector<int> in(1001);
    Await(*transport, transport->Receive(1, Tag::kControl, WritableBytesOf(in)));
    EXPECT_EQ(in, std::vector<int>(1001, 5));
  }
}

TEST(MpiTransport, TransportsDoNotHearEachOther) {
  const auto other = SharedRuntime().MakeTransport();
  const std::vector<int> out = {1};
  const Request send = other->Send(other->rank(), Tag::kControl, BytesOf(out));
  EXPECT_FALSE(SharedTransport().Probe(Tag::kControl).has_value());
  std::vector<int> in(1);
  Await(*other, other->Receive(other->rank(), Tag::kControl, WritableBytesOf(in)));
  Await(*other, send);
}

TEST(MpiRuntime, KnowsThatALauncherStartedIt) { EXPECT_TRUE(InsideMpiLaunch()); }

// A handler of Open MPI's would wait for itself if the rank crashed within malloc.
TEST(MpiRuntime, LeavesARankThatCrashesToTheSystem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has a handler of its own";
#else
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE}) {
    struct sigaction now;
    ASSERT_EQ(sigaction(number, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << number;
  }
#endif
}

}  // namespace
}  // namespace dtrain
