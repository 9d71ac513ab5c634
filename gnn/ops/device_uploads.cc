#include "gnn/ops/device_uploads.h"

#include <algorithm>
#include <cstring>

#include "gnn/ops/device_failure.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

DeviceUploads::~DeviceUploads() {
  for (Piece& piece : pieces_) {
    if (piece.busy) {
      // Errors are ignored: a lost device has no work left to wait for.
      static_cast<void>(device().Synchronize(piece.copied));
      device().FreeEvent(piece.copied);
    }
    if (piece.memory != nullptr) device().FreePinned(piece.memory);
  }
}

/// Returns the least recently used buffer, of at least `bytes` bytes, after its copy is done.
DeviceUploads::Piece& DeviceUploads::PieceOf(std::size_t bytes) {
  Piece& piece = pieces_[next_++ % kPieces];
  if (piece.busy) {
    ThrowIfError(device().Synchronize(piece.copied));
    device().FreeEvent(piece.copied);
    piece.busy = false;
  }
  if (piece.bytes >= bytes) return piece;
  if (piece.memory != nullptr) device().FreePinned(piece.memory);
  piece = {};
  const std::size_t with_room = WithReserve(bytes);
  piece.memory = static_cast<std::byte*>(ThrowIfError(device().AllocatePinned(with_room)));
  piece.bytes = with_room;
  return piece;
}

std::uint64_t DeviceUploads::pinned_bytes() const {
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.bytes;
  return bytes;
}

DeviceUploads::Sent DeviceUploads::Send(std::span<const std::span<const std::byte>> arrays) {
  std::vector<std::size_t> begins;
  std::size_t bytes = 0;
  for (const std::span<const std::byte> array : arrays) {
    begins.push_back(bytes);
    bytes += (array.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  Sent sent;
  sent.memory = at::empty({static_cast<std::int64_t>(bytes)},
                          torch::TensorOptions(torch::kUInt8).device(place()));
  auto* const to = static_cast<std::byte*>(sent.memory.data_ptr());
  for (const std::size_t begin : begins) sent.arrays.push_back(to + begin);
  if (bytes == 0) return sent;
  Piece& piece = PieceOf(bytes);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i].empty())
      std::memcpy(piece.memory + begins[i], arrays[i].data(), arrays[i].size());
  }
  ThrowIfError(device().CopyToDevice(kDefaultStream, to, piece.memory, bytes));
  piece.copied = ThrowIfError(device().Record(kDefaultStream));
  piece.busy = true;
  sent_bytes_ += bytes;
  return sent;
}

void PackedArrays::AddBytes(const void* begin, std::size_t bytes) {
  for (Array& array : arrays_) {
    if (array.begin != begin) continue;
    array.bytes = std::max(array.bytes, bytes);
    return;
  }
  arrays_.push_back({begin, bytes});
}

void PackedArrays::Send(DeviceUploads& uploads) {
  std::vector<std::span<const std::byte>> spans;
  for (const Array& array : arrays_)
    spans.emplace_back(static_cast<const std::byte*>(array.begin), array.bytes);
  sent_ = uploads.Send(spans);
}

const std::byte* PackedArrays::At(const void* begin) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    if (arrays_[i].begin == begin) return sent_.arrays[i];
  RHIZOME_CHECK(false);  // only added arrays may be requested
  return nullptr;
}

torch::Tensor TensorOnDevice(const void* memory, at::IntArrayRef sizes, torch::Dtype type,
                             const torch::Device& place) {
  return at::for_blob(const_cast<void*>(memory), sizes)  // it is only read
      .options(torch::TensorOptions(type).device(place))
      .target_device(place)
      .make_tensor();
}

}  // namespace internal
}  // namespace rhizome
