#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rhizome::testing {

/// Returns the errors to try for an operation: EIO, and `drawn` of ENOSPC, EBADF, EINTR, EAGAIN,
/// EMFILE, EACCES, ENOMEM and ECANCELED, chosen by the seed and the operation's number, or all of
/// them. For reads also: half of the bytes, or none (FakeFileSystem::kShortRead, kEmptyRead).
std::vector<int> FaultKinds(const std::string& operation, std::uint64_t number, std::uint64_t seed,
                            std::size_t drawn);
std::vector<int> AllFaultKinds(const std::string& operation);

}  // namespace rhizome::testing
