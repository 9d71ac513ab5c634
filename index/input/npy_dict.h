#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The Python dictionary in the header of a .npy file.
struct NpyDict {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  ///< at most 32 numbers
};

/// Parses the text of such a dictionary: the three keys, each once, in any order. It does not
/// recurse, and never allocates more than the length of the text.
/// Errors: kInvalidArgument, naming the key.
Result<NpyDict> ParseNpyDict(std::string_view text);

}  // namespace internal
}  // namespace rhizome
