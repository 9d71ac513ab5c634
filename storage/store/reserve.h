#pragma once

#include <cstdint>

#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {

/// The size of a store's reserve: disk blocks that are set aside, so that an operation which frees
/// space has space for its commit on a full disk. They are allocated past the end of the file
/// FORMAT, without changing its length (storage/FORMAT.md, "Store directory"). A store works
/// without a reserve, so no failure here is an error. Does nothing on a fake disk.
inline constexpr std::uint64_t kReserveBytes = std::uint64_t{2} << 20;

/// Allocates the reserve of a store if it has none and the disk has at least eight times its size
/// left. Writers call it once they hold the lock.
void SetReserveAside(FileSystem& fs, const Path& store) noexcept;

/// Releases the reserve during the lifetime of this object if the disk is nearly full. The
/// destructor allocates it again, as far as there is space.
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

}  // namespace internal
}  // namespace rhizome
