#pragma once

#include <cstdint>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"

namespace rhizome::inline internal {

/// Blocks of the disk that a store sets aside, so that what frees space finds room for its commit
/// where no byte is left: they are allocated behind the end of its file FORMAT, and are no bytes of
/// it (storage/FORMAT.md, "Store directory"). A store without them is as good: all of this is tried
/// and never an error. Where the disk is a fake nothing is done.
inline constexpr std::uint64_t kReserveBytes = std::uint64_t{2} << 20;

/// Sets the reserve of a store aside if there is none and the disk has eight times as much left.
/// For writers, once they have the lock.
void SetReserveAside(FileSystem& fs, const Path& store) noexcept;

/// While it lives, the reserve may be used, if the disk is that full. Then as much of it as there
/// is room for is set aside again.
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
