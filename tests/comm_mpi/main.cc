// Runs the tests of this folder on every rank of one mpirun.  All ranks run the same tests in the same order; rank 0
// prints.  A failed test ends the job: the other ranks would wait for the failed one.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/comm_mpi/mpi_fixture.h"

namespace dtrain {
namespace {

class EndJobOnFailure : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::cerr << "rank " << SharedTransport().rank() << ": " << result.file_name() << ":"
              << result.line_number() << "\n"
              << result.message() << std::endl;
    MpiRuntime::Abort(ExitCode::kInternal);
  }
};

}  // namespace

MpiRuntime* shared_runtime = nullptr;
Transport* shared_transport = nullptr;

MpiRuntime& SharedRuntime() { return *shared_runtime; }
Transport& SharedTransport() { return *shared_transport; }

}  // namespace dtrain

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  dtrain::MpiRuntime runtime(argc, argv);
  const auto transport = runtime.MakeTransport();
  dtrain::shared_runtime = &runtime;
  dtrain::shared_transport = transport.get();
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (transport->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new dtrain::EndJobOnFailure);
  return RUN_ALL_TESTS();
}
