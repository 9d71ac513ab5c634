#include "storage/catalog/delta_head.h"

#include <algorithm>
#include <array>

#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kStateAt = 17;  // after version, sequence and previous

Hash128 ReadHash(ByteReader& in, std::string_view field) {
  Hash128 hash{};
  const auto bytes = in.Bytes(field, hash.size());
  std::copy(bytes.begin(), bytes.end(), hash.begin());
  return hash;
}

}  // namespace

void WriteHistoryState(ByteWriter& out, const HistoryState& state) {
  out.Bytes(state.commits);
  out.Number(static_cast<std::uint8_t>(state.leader ? 1 : 0));
  if (!state.leader) return;
  out.Bytes(state.leader->store.bytes);
  out.Number(state.leader->commit);
  out.Bytes(state.leader->commits);
}

HistoryState ReadHistoryState(ByteReader& in) {
  HistoryState state{.commits = ReadHash(in, "state")};
  const auto follows = in.Number<std::uint8_t>("follows");
  if (follows > 1) in.Refuse("follows", "is neither 0 nor 1");
  if (follows != 1) return state;
  LeaderState& leader = state.leader.emplace();
  leader.store.bytes = ReadHash(in, "leader");
  leader.commit = in.Number<std::uint64_t>("leader's commit");
  leader.commits = ReadHash(in, "leader's state");
  return state;
}

std::optional<DeltaHead> ReadDeltaHead(std::span<const std::byte> record) {
  ByteReader in(record);
  const auto version = in.Number<std::uint8_t>("version");
  if (version == 0 || version > kDeltaRecordVersion) return std::nullopt;
  DeltaHead head;
  head.sequence = in.Number<std::uint64_t>("sequence");
  head.previous = in.Number<std::uint64_t>("previous");
  if (version >= 2) head.state = ReadHistoryState(in);
  return in.ok() ? std::optional(head) : std::nullopt;
}

Hash128 SealDeltaRecord(std::span<std::byte> record, const Hash128& before,
                        std::span<const DeltaRow> rows) {
  RHIZOME_CHECK(record.size() >= kStateAt + before.size() &&
                static_cast<std::uint8_t>(record[0]) >= kPlainDeltaRecordVersion);
  const auto state = record.subspan(kStateAt, before.size());
  std::copy(before.begin(), before.end(), state.begin());
  Hash128 after = Xxh3(record);
  if (!rows.empty()) {
    StreamHash hash;
    hash.Update(after);
    for (const DeltaRow& row : rows) {
      std::array<std::byte, 16> key;
      StoreLittle(key.data(), row.array_id);
      StoreLittle(key.data() + sizeof(row.array_id), row.vertex);
      hash.Update(key);
      hash.Update(row.bytes);
    }
    after = hash.xxh3();
  }
  const Hash128 written = RHIZOME_MUTANT("a commit has no state") ? Hash128{} : after;
  std::copy(written.begin(), written.end(), state.begin());
  return after;
}

}  // namespace internal
}  // namespace rhizome
