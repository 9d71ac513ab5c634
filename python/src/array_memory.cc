#include "array_memory.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <utility>

namespace rhizome::python {
namespace {

constexpr std::size_t kMaxKeptBytes = std::size_t{32} << 20;
constexpr std::size_t kMinKeptBytes = std::size_t{256} << 10;

/// A piece may be reused for an array only if the array needs at least 1/kMinShare of it.
constexpr std::size_t kMinShare = 2;

/// Header before the memory of an array. It stores the size.
struct alignas(64) Piece {
  std::size_t bytes = 0;
};

void Free(Piece* piece) noexcept { ::operator delete (piece, std::align_val_t{alignof(Piece)}); }

/// Freed pieces that are kept for reuse, oldest first.
class KeptMemory {
 public:
  /// Returns the smallest suitable piece, or null.
  Piece* Find(std::size_t bytes) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr;
    Piece** best = nullptr;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t has = pieces_[i]->bytes;
      if (has >= bytes && has / kMinShare <= bytes && (best == nullptr || has < (*best)->bytes))
        best = &pieces_[i];
    }
    if (best == nullptr) return nullptr;
    Piece* const found = *best;
    Remove(best);
    return found;
  }

  /// Keeps a piece, replacing older ones if necessary. Returns false if it is not kept.
  bool Keep(Piece* piece) noexcept {
    if (piece->bytes > kMaxKeptBytes) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    while (count_ == pieces_.size() || bytes_ + piece->bytes > kMaxKeptBytes) {
      Piece* const oldest = pieces_.front();
      Remove(pieces_.data());
      Free(oldest);
    }
    pieces_[count_++] = piece;
    bytes_ += piece->bytes;
    return true;
  }

 private:
  void Remove(Piece** at) noexcept {
    bytes_ -= (*at)->bytes;
    std::move(at + 1, pieces_.data() + count_--, at);
  }

  std::mutex mutex_;
  std::array<Piece*, 32> pieces_ = {};
  std::size_t count_ = 0, bytes_ = 0;
};

/// Never destroyed, because arrays may outlive static objects.
KeptMemory& KeptPieces() {
  static KeptMemory* const kept = new KeptMemory;
  return *kept;
}

}  // namespace

void* ArrayMemory::Take(std::size_t bytes) {
  Piece* piece = bytes < kMinKeptBytes ? nullptr : KeptPieces().Find(bytes);
  if (piece == nullptr) {
    void* const fresh = ::operator new (sizeof(Piece) + bytes, std::align_val_t{alignof(Piece)});
    piece = new (fresh) Piece{bytes};
  }
  return piece + 1;
}

void ArrayMemory::GiveBack(void* memory) noexcept {
  if (memory == nullptr) return;
  Piece* const piece = static_cast<Piece*>(memory) - 1;
  if (piece->bytes < kMinKeptBytes || !KeptPieces().Keep(piece)) Free(piece);
}

}  // namespace rhizome::python
