#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/gnn/compute_device.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

/// Copies arrays of the host to the device, in order with libtorch's work there. They are packed in
/// pinned memory, a few pieces of which are used in turn, and go up as one copy.
/// Threads: one at a time. Ownership: `device` must outlive it. Errors are thrown (DeviceFailure).
class DeviceUploads {
 public:
  explicit DeviceUploads(const ComputeDevice& device) : device_(device) {}
  /// Waits for the copies.
  ~DeviceUploads();
  DeviceUploads(const DeviceUploads&) = delete;
  DeviceUploads& operator=(const DeviceUploads&) = delete;

  /// The arrays in the order in which they were given, each aligned to kAlignment bytes, in memory
  /// of libtorch.
  struct Sent {
    torch::Tensor memory;
    std::vector<const std::byte*> arrays;
  };
  /// Queues the copy: the arrays may change when it returns.
  Sent Send(std::span<const std::span<const std::byte>> arrays);

  Device& device() const { return *device_.kernels; }
  const torch::Device& place() const { return device_.place; }
  std::uint64_t sent_bytes() const { return sent_bytes_; }

  /// Returns the pinned memory that its pieces take now, and at most if nothing larger than `sent`
  /// bytes is sent.
  std::uint64_t pinned_bytes() const;
  static std::uint64_t PinnedBytes(std::uint64_t sent) { return kPieces * WithRoom(sent); }

 private:
  static constexpr std::size_t kAlignment = 16;
  static constexpr std::size_t kPieces = 4;

  /// A piece has room for minibatches that are somewhat larger: pinning is slow.
  static constexpr std::uint64_t WithRoom(std::uint64_t bytes) { return bytes + bytes / 2; }
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

/// Arrays that go up together. What is added more than once goes up once.
class PackedArrays {
 public:
  template <typename T>
  void Add(std::span<const T> array) {
    if (!array.empty()) AddBytes(array.data(), array.size_bytes());
  }
  /// Copies what was added, each array from its beginning to the furthest end that was named.
  void Send(DeviceUploads& uploads);
  /// Returns the copy of what was added before it was sent.
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

/// Returns a tensor of memory that lies on the device and stays as long as it is used.
torch::Tensor TensorOnDevice(const void* memory, at::IntArrayRef sizes, torch::Dtype type,
                             const torch::Device& place);

}  // namespace rhizome::inline internal
