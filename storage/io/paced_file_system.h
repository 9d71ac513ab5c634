#pragma once

#include <cstddef>
#include <span>

#include "storage/io/forwarding_file_system.h"
#include "storage/io/io_pacer.h"

namespace rhizome {
inline namespace internal {

/// Paces the writes and syncs of the files that it creates (pacer null: no pacing). Ownership:
/// `base` and `pacer` must outlive it and its files.
class PacedFileSystem final : public ForwardingFileSystem {
 public:
  PacedFileSystem(FileSystem& base, IoPacer* pacer) : ForwardingFileSystem(base), pacer_(pacer) {}
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override;

 private:
  IoPacer* const pacer_;
};

/// Appends `bytes` to a file or sink in paced pieces; without a pacer, in one piece.
template <typename Sink>
Status AppendPaced(Sink& sink, std::span<const std::byte> bytes, IoPacer* pacer) {
  while (true) {
    const auto piece = bytes.first(PieceBytes(pacer, bytes.size()));
    bytes = bytes.subspan(piece.size());
    const IoPacer::Turn turn(pacer);
    RHIZOME_RETURN_IF_ERROR(sink.Append(piece));
    if (bytes.empty()) return Status::Ok();
  }
}

}  // namespace internal
}  // namespace rhizome
