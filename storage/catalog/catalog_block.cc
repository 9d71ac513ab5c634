#include "storage/catalog/catalog_block.h"

#include <cstdint>
#include <string>

#include "storage/base/little_endian.h"
#include "storage/catalog/rocks_unpacker.h"

namespace rhizome {
inline namespace internal {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kOffsetBytes = sizeof(std::uint32_t);

/// The restart array after the entries of a block: the offsets of the entries whose keys are stored
/// in full.
class Restarts {
 public:
  explicit Restarts(Bytes block) {
    if (block.size() < 2 * kOffsetBytes) return;
    const std::uint64_t count = LoadLittle<std::uint32_t>(block.last(kOffsetBytes).data());
    if (count == 0 || count > block.size() / kOffsetBytes - 1) return;
    begin_ = block.size() - (count + 1) * kOffsetBytes;
    offsets_ = block.subspan(begin_, count * kOffsetBytes);
    good_ = LoadLittle<std::uint32_t>(offsets_.data()) == 0;
  }
  bool good() const { return good_; }
  std::uint64_t begin() const { return begin_; }

  /// Must be called for each entry in order. Returns whether the entry at `offset` may share
  /// `shared` bytes with the previous key.
  bool Fits(std::uint64_t offset, std::uint64_t shared) {
    if (next_ * kOffsetBytes == offsets_.size() ||
        LoadLittle<std::uint32_t>(offsets_.data() + next_ * kOffsetBytes) != offset)
      return offset > 0;
    ++next_;
    return shared == 0;
  }
  bool AllSeen() const { return next_ * kOffsetBytes == offsets_.size(); }

 private:
  bool good_ = false;
  std::uint64_t begin_ = 0;
  std::size_t next_ = 0;
  Bytes offsets_;
};

}  // namespace

bool ReadRocksBlock(Bytes block, BlockValues values, const BlockEntryFunction& visit) {
  Restarts restarts(block);
  if (!restarts.good()) return false;
  const Bytes entries = block.first(restarts.begin());
  if (entries.empty()) return block.size() == 2 * kOffsetBytes;
  Unpacker in(entries);
  std::string key;
  while (!in.empty()) {
    const std::uint64_t offset = entries.size() - in.left();
    const std::uint64_t shared = in.NumberTo(key.size());
    const std::uint64_t own = in.Number();
    if (in.bad() || !restarts.Fits(offset, shared)) return false;
    Bytes rest;
    Bytes value;
    if (values == BlockValues::kSized) {
      const std::uint64_t value_bytes = in.Number();
      rest = in.Take(own);
      value = in.Take(value_bytes);
    } else {
      // If a key shares bytes, RocksDB stores its handle as a difference. The tables of a catalogue
      // have no such entries.
      rest = in.Take(own);
      const Bytes before = in.rest();
      in.Number();
      in.Number();
      value = before.first(before.size() - in.left());
      if (shared != 0) return false;
    }
    if (in.bad()) return false;
    key.resize(shared);
    key.append(reinterpret_cast<const char*>(rest.data()), rest.size());
    if (!visit(key, value)) return false;
  }
  return restarts.AllSeen();
}

}  // namespace internal
}  // namespace rhizome
