// `dtrain bench allreduce` measures the time of one reduction, for each collective and size, and compares it with a
// plain MPI_Allreduce loop in the same run.
//
// The candidates alternate sample by sample, so that other load affects all alike.  Rank 0 prints one JSON line per
// case:
//
//   {"bench":"allreduce","collective":"ordered","transport":"mpi","ranks":4,"bytes":1048576,
//    "samples":30,"p50_us":310.2,"min_us":280.1,"gbyte_s":3.38,"plain_mpi_p50_us":520.7,
//    "speedup":1.68}
//
// gbyte_s is bytes / time (not "bus" bandwidth); speedup is plain MPI's median over ours; the last
// two are absent over a transport other than mpi.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/transport.h"

namespace dtrain {

struct BenchAllreduceOptions {
  std::vector<std::string> collectives = {"ordered",      "ring",         "halving_doubling",
                                          "hierarchical", "double_trees", "mpi"};
  std::vector<int64_t> sizes_bytes = {4 << 10, 16 << 10, 64 << 10, 256 << 10,  1 << 20,
                                      4 << 20, 16 << 20, 40 << 20, 100'000'000};
  int samples = 0;   // of each candidate; 0: automatic, fewer for large sizes
  int per_node = 0;  // ranks per node for `hierarchical`; 0: the real nodes
};

// All ranks call it with the same options.  Returns 0; a wrong sum is a bug (DT_CHECK).
int BenchAllreduce(Transport& transport, const BenchAllreduceOptions& options, std::ostream& out);

}  // namespace dtrain
