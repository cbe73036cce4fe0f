// `dtrain bench link` measures latency and bandwidth between rank 0 and each other rank, by ping-pong, and the
// parameters of the link for a simulation, by a one-way stream.
//
// A message of `bytes` is sent to the other rank, which sends one of the same size back; latency_us is half of the
// median round trip.  Rank 0 prints one JSON line per case:
//
//   {"bench":"link","transport":"mpi","from":0,"to":1,"same_node":true,"bytes":1024,"samples":200,
//    "latency_us":0.9,"latency_us_min":0.8,"gbyte_s":1.14}
//
// The last line for a rank is the fit (link_fit.h), with the keys of a config's `cluster.network`; rates are of
// payload, 4 to 5 % less than the bytes that TCP and Ethernet send:
//
//   {"bench":"link_fit","transport":"mpi","from":0,"to":1,"same_node":false,"latency_us":9.4,
//    "bandwidth_gbit_s":0.957,"bucket_bytes":221000,"line_gbit_s":48}
//
// With `incast` there is only one line, for all ranks together (link_shares.h):
//
//   {"bench":"link_incast","transport":"mpi","ranks":8,"bytes":4194304,"messages":70,
//    "seconds":24.1,"share_deviation":0.55}
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

struct BenchLinkOptions {
  std::vector<int64_t> sizes_bytes = {1,        64,        1024,    4096,    16 << 10,
                                      64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
  int samples = 0;           // 0: automatic, fewer for large sizes
  double fit_seconds = 0.5;  // minimal length of a stream, which limits the visible bucket
  bool incast = false;
};

// All ranks call it with the same options; ranks that are not measured wait in a barrier.  Returns 0.  Throws
// UsageError if there is only one rank, or with `incast` only two.
int BenchLink(Transport& transport, const BenchLinkOptions& options, std::ostream& out);

}  // namespace dtrain
