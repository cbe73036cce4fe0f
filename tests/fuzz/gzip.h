// Compresses bytes as gzip does, so that mutated content still has a valid checksum and length.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "framework/core/check.h"

namespace dtrain::fuzz {

inline std::string Gzipped(std::string_view content) {
  constexpr int kGzipWindow = 15 + 16, kMemory = 8;
  z_stream stream = {};
  int status =
      deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY);
  DT_CHECK(status == Z_OK) << status;
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  status = deflate(&stream, Z_FINISH);
  DT_CHECK(status == Z_STREAM_END) << status;
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace dtrain::fuzz
