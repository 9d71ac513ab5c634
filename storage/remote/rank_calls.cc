#include "storage/remote/rank_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "storage/base/little_endian.h"

namespace rhizome {
namespace {

using Length = std::array<std::byte, 8>;

std::string NameOfRank(const Transport& transport, std::uint32_t rank) {
  return fmt::format("rank {} ({})", rank, transport.HostOf(rank));
}

Status CheckRankBytes(std::uint64_t bytes) {
  if (bytes <= kMaxRankBytes) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "{} bytes for the other ranks are too many: at most {} are allowed", bytes, kMaxRankBytes));
}

/// Sends bytes whose length the peer does not know.
Status SendBytes(Transport& transport, std::uint32_t peer, std::span<const std::byte> bytes) {
  RHIZOME_RETURN_IF_ERROR(CheckRankBytes(bytes.size()));
  Length length = {};
  StoreLittle<std::uint64_t>(length.data(), bytes.size());
  RHIZOME_RETURN_IF_ERROR(transport.Exchange(peer, length, {}));
  return transport.Exchange(peer, bytes, {});
}

Result<std::vector<std::byte>> ReceiveBytes(Transport& transport, std::uint32_t peer) {
  Length length = {};
  RHIZOME_RETURN_IF_ERROR(transport.Exchange(peer, {}, length));
  const auto size = LoadLittle<std::uint64_t>(length.data());
  if (size > kMaxRankBytes)
    return Fail(Status::Corruption(fmt::format(
        "{} announces {} bytes, but at most {} are allowed: the ranks do not make the same calls",
        NameOfRank(transport, peer), size, kMaxRankBytes)));
  std::vector<std::byte> bytes(size);
  RHIZOME_RETURN_IF_ERROR(transport.Exchange(peer, {}, bytes));
  return bytes;
}

/// Appends a text, preceded by its length.
void AppendText(std::string_view text, std::vector<std::byte>& out) {
  Length length = {};
  StoreLittle<std::uint64_t>(length.data(), text.size());
  out.insert(out.end(), length.begin(), length.end());
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Removes a text from the front of `in`; returns false if there is none.
bool TakeText(std::span<const std::byte>& in, std::string& text) {
  if (in.size() < sizeof(Length)) return false;
  const auto size = LoadLittle<std::uint64_t>(in.data());
  in = in.subspan(sizeof(Length));
  if (size > in.size()) return false;
  text.assign(reinterpret_cast<const char*>(in.data()), size);
  in = in.subspan(size);
  return true;
}

std::string Having(const RankFact* fact) {
  return fact == nullptr ? "nothing more to compare" : fact->name + " " + fact->value;
}

/// Compares the facts of a rank with the facts of rank 0. Returns the first difference, or an empty
/// text.
Result<std::string> DifferenceOf(const Transport& transport, std::uint32_t rank,
                                 std::span<const std::byte> in, std::span<const RankFact> facts) {
  for (std::size_t i = 0; i < facts.size() || !in.empty(); ++i) {
    const bool more = !in.empty();
    RankFact theirs;
    if (more && !(TakeText(in, theirs.name) && TakeText(in, theirs.value)))
      return Fail(Status::Corruption(
          fmt::format("the facts of {} cannot be read: the ranks do not make the same calls",
                      NameOfRank(transport, rank))));
    const RankFact* const ours = i < facts.size() ? &facts[i] : nullptr;
    if (more && ours != nullptr && theirs.name == ours->name && theirs.value == ours->value)
      continue;
    return fmt::format("{} has {}, but {} has {}: all ranks of a job must have the same",
                       NameOfRank(transport, rank), Having(more ? &theirs : nullptr),
                       NameOfRank(transport, 0), Having(ours));
  }
  return std::string();
}

std::vector<std::byte> EncodeFacts(std::span<const RankFact> facts) {
  std::vector<std::byte> out;
  for (const RankFact& fact : facts) {
    AppendText(fact.name, out);
    AppendText(fact.value, out);
  }
  return out;
}

}  // namespace

Result<std::vector<std::byte>> Broadcast(Transport& transport, std::span<const std::byte> bytes) {
  if (transport.rank() != 0) return ReceiveBytes(transport, 0);
  RHIZOME_RETURN_IF_ERROR(CheckRankBytes(bytes.size()));
  for (std::uint32_t peer = 1; peer < transport.ranks(); ++peer)
    RHIZOME_RETURN_IF_ERROR(SendBytes(transport, peer, bytes));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<std::vector<std::vector<std::byte>>> GatherAtFirst(Transport& transport,
                                                          std::span<const std::byte> bytes) {
  std::vector<std::vector<std::byte>> all;
  RHIZOME_RETURN_IF_ERROR(CheckRankBytes(bytes.size()));
  if (transport.rank() != 0) {
    RHIZOME_RETURN_IF_ERROR(SendBytes(transport, 0, bytes));
    return all;
  }
  all.emplace_back(bytes.begin(), bytes.end());
  for (std::uint32_t peer = 1; peer < transport.ranks(); ++peer) {
    RHIZOME_ASSIGN_OR_RETURN(auto theirs, ReceiveBytes(transport, peer));
    all.push_back(std::move(theirs));
  }
  return all;
}

Status Barrier(Transport& transport) {
  RHIZOME_RETURN_IF_ERROR(GatherAtFirst(transport, {}));
  RHIZOME_RETURN_IF_ERROR(Broadcast(transport, {}));
  return Status::Ok();
}

/// Gathers the facts on rank 0, compares them there, and broadcasts the outcome: an empty text, or
/// the first difference.
Status Agree(Transport& transport, std::span<const RankFact> facts) {
  RHIZOME_ASSIGN_OR_RETURN(const auto all, GatherAtFirst(transport, EncodeFacts(facts)));
  std::string verdict;
  for (std::uint32_t rank = 1; rank < all.size() && verdict.empty(); ++rank) {
    RHIZOME_ASSIGN_OR_RETURN(verdict, DifferenceOf(transport, rank, all[rank], facts));
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto told,
                           Broadcast(transport, std::as_bytes(std::span(verdict))));
  if (told.empty()) return Status::Ok();
  return Status::InvalidArgument(
      std::string(reinterpret_cast<const char*>(told.data()), told.size()));
}

Status AgreeOnState(Transport& transport, const StorePoint& point, const StateId& state) {
  const RankFact numbers[] = {{"store", point.store.ToString()},
                              {"generation", fmt::format("{}", point.generation)},
                              {"changes up to", fmt::format("{}", point.sequence)}};
  RHIZOME_RETURN_IF_ERROR(Agree(transport, numbers));
  const RankFact hashes[] = {{"state", state.ToString()}};
  const Status same = Agree(transport, hashes);
  if (same.code() != StatusCode::kInvalidArgument) return same;
  return Status::InvalidArgument(
      fmt::format("{}; with equal numbers of commits, the ranks have copies of one store that have "
                  "diverged; give all ranks the same copy",
                  same.message()));
}

}  // namespace rhizome
