#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rhizome::testing {

/// With what an operation fails: EIO, `drawn` of ENOSPC, EBADF, EINTR, EAGAIN, EMFILE, EACCES,
/// ENOMEM and ECANCELED, as the seed and the operation's number say, or all of them. Reads also
/// bring half of the bytes, or none (FakeFileSystem::kShortRead, kEmptyRead).
std::vector<int> FaultKinds(const std::string& operation, std::uint64_t number, std::uint64_t seed,
                            std::size_t drawn);
std::vector<int> AllFaultKinds(const std::string& operation);

}  // namespace rhizome::testing
