#pragma once

#include <cstdint>

#include "rhizome/storage/file_system.h"

namespace rhizome::inline internal {

/// The size of a store's reserve: blocks of the disk that are set aside, so that an operation which
/// frees space finds room for its commit on a full disk. They are allocated behind the end of the
/// file FORMAT, and are no bytes of it (storage/FORMAT.md, "Store directory"). A store works
/// without a reserve, so no failure here is an error. Nothing is done on a fake disk.
inline constexpr std::uint64_t kReserveBytes = std::uint64_t{2} << 20;

/// Sets the reserve of a store aside if it has none and the disk has at least eight times as much
/// space left. Writers call it once they hold the lock.
void SetReserveAside(FileSystem& fs, const Path& store) noexcept;

/// Frees the reserve while it lives, if the disk is nearly full. Its destructor sets aside again as
/// much as there is room for.
class ReserveInUse {
 public:
  ReserveInUse(FileSystem& fs, Path store) noexcept;
  ~ReserveInUse();
  ReserveInUse(const ReserveInUse&) = delete;
  ReserveInUse& operator=(const ReserveInUse&) = delete;

 private:
  FileSystem& fs_;
  const Path store_;
  bool given_up_ = false;
};

}  // namespace rhizome::inline internal
