#include "reliability/harness/fault_kinds.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

#include "testing/fake_file_system.h"

namespace rhizome::testing {
namespace {

constexpr std::array kOtherErrors = {ENOSPC, EBADF,  EINTR,  EAGAIN,
                                     EMFILE, EACCES, ENOMEM, ECANCELED};

}  // namespace

std::vector<int> FaultKinds(const std::string& operation, std::uint64_t number, std::uint64_t seed,
                            std::size_t drawn) {
  std::mt19937_64 rng(seed * 1'000'003 + number);
  std::array others = kOtherErrors;
  std::shuffle(others.begin(), others.end(), rng);
  std::vector<int> kinds = {EIO};
  kinds.insert(kinds.end(), others.begin(), others.begin() + std::min(drawn, others.size()));
  if (operation.starts_with("read "))
    kinds.insert(kinds.end(), {FakeFileSystem::kShortRead, FakeFileSystem::kEmptyRead});
  return kinds;
}

std::vector<int> AllFaultKinds(const std::string& operation) {
  return FaultKinds(operation, 0, 0, kOtherErrors.size());
}

}  // namespace rhizome::testing
