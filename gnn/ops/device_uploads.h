#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gnn/ops/compute_device.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Copies host arrays to the device, in order with libtorch's work there. The arrays of a call are
/// packed into a pinned buffer and sent as one copy; a few such buffers are used in rotation.
/// Threads: one at a time. Ownership: `device` must outlive this object. Errors are thrown
/// (DeviceFailure).
class DeviceUploads {
 public:
  explicit DeviceUploads(const ComputeDevice& device) : device_(device) {}
  /// Waits for all copies.
  ~DeviceUploads();
  DeviceUploads(const DeviceUploads&) = delete;
  DeviceUploads& operator=(const DeviceUploads&) = delete;

  /// Device copies of the arrays, in the order of the call, each aligned to kAlignment bytes.
  /// `memory` owns them.
  struct Sent {
    torch::Tensor memory;
    std::vector<const std::byte*> arrays;
  };
  /// Queues the copy. The arrays may change once this returns.
  Sent Send(std::span<const std::span<const std::byte>> arrays);

  Device& device() const { return *device_.kernels; }
  const torch::Device& place() const { return device_.place; }
  std::uint64_t sent_bytes() const { return sent_bytes_; }

  /// Return the pinned memory of the buffers now, and its maximum if no call sends more than `sent`
  /// bytes.
  std::uint64_t pinned_bytes() const;
  static std::uint64_t PinnedBytes(std::uint64_t sent) { return kPieces * WithReserve(sent); }

 private:
  static constexpr std::size_t kAlignment = 16;
  static constexpr std::size_t kPieces = 4;

  /// Buffers are larger than requested, to fit somewhat larger minibatches, because pinning is
  /// slow.
  static constexpr std::uint64_t WithReserve(std::uint64_t bytes) { return bytes + bytes / 2; }
  struct Piece {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    bool busy = false;
    DeviceEvent copied = 0;
  };
  Piece& PieceOf(std::size_t bytes);

  const ComputeDevice& device_;
  std::array<Piece, kPieces> pieces_;
  std::size_t next_ = 0;
  std::uint64_t sent_bytes_ = 0;
};

/// Arrays that are uploaded together. An array that is added more than once is sent once.
class PackedArrays {
 public:
  template <typename T>
  void Add(std::span<const T> array) {
    if (!array.empty()) AddBytes(array.data(), array.size_bytes());
  }
  /// Copies the added arrays, each from its beginning to the furthest end that was added.
  void Send(DeviceUploads& uploads);
  /// Returns the device copy of an array that was added before Send.
  template <typename T>
  std::span<const T> Of(std::span<const T> array) const {
    if (array.empty()) return {};
    return {reinterpret_cast<const T*>(At(array.data())), array.size()};
  }
  const torch::Tensor& memory() const { return sent_.memory; }

 private:
  struct Array {
    const void* begin;
    std::size_t bytes;
  };
  void AddBytes(const void* begin, std::size_t bytes);
  const std::byte* At(const void* begin) const;

  std::vector<Array> arrays_;
  DeviceUploads::Sent sent_;
};

/// Returns a tensor over device memory, without ownership: the memory must outlive the tensor.
torch::Tensor TensorOnDevice(const void* memory, at::IntArrayRef sizes, torch::Dtype type,
                             const torch::Device& place);

}  // namespace internal
}  // namespace rhizome
