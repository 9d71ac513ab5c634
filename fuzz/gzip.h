#pragma once

#include <zlib.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "storage/base/check.h"

namespace rhizome::fuzzing {

/// Compresses `text` into the gzip format.
inline std::vector<std::byte> Gzip(std::string_view text) {
  std::vector<std::byte> out(text.size() + 64);
  z_stream stream{};
  RHIZOME_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  RHIZOME_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace rhizome::fuzzing
