#include "gnn/ranks/rank_layers.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Header of a chunk: the sizes in bytes of its description and of its file, which follow.
using ChunkHead = std::array<std::byte, 16>;

/// Maximum size of a description, a line of text that names a file.
constexpr std::uint64_t kMaxDescription = 4096;

}  // namespace

Status ShareScores(Transport& transport, ScoreTable& scores) {
  if (transport.ranks() == 1) return Status::Ok();
  const std::span<float> kept = scores.kept();
  const std::span<std::byte> bytes = std::as_writable_bytes(kept);
  if (transport.rank() == 0) {
    std::vector<float> theirs(kept.size());
    for (std::uint32_t peer = 1; peer < transport.ranks(); ++peer) {
      RHIZOME_RETURN_IF_ERROR(
          transport.Exchange(peer, {}, std::as_writable_bytes(std::span(theirs))));
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (std::isnan(kept[i])) kept[i] = theirs[i];
    }
    for (std::uint32_t peer = 1; peer < transport.ranks(); ++peer)
      RHIZOME_RETURN_IF_ERROR(transport.Exchange(peer, bytes, {}));
    return Status::Ok();
  }
  RHIZOME_RETURN_IF_ERROR(transport.Exchange(0, bytes, {}));
  return transport.Exchange(0, {}, bytes);
}

LayerSharing::Chunks RankLayers::ChunksOf(std::uint32_t rank, std::uint64_t chunks) const {
  return {rank * chunks / transport_.ranks(),
          (std::uint64_t{rank} + 1) * chunks / transport_.ranks()};
}

Status RankLayers::Send(FileSystem& fs, const Path& root, std::uint32_t peer, std::uint64_t chunk,
                        const FinishedChunk& finished) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> file,
                           ReadWholeFile(fs, root / finished.file.path, finished.file.size_bytes));
  const std::string description = EncodeFinished(0, chunk, finished);
  RHIZOME_CHECK(description.size() <= kMaxDescription);
  ChunkHead head{};
  StoreLittle<std::uint64_t>(head.data(), description.size());
  StoreLittle<std::uint64_t>(head.data() + 8, file.size());
  RHIZOME_RETURN_IF_ERROR(transport_.Exchange(peer, head, {}));
  RHIZOME_RETURN_IF_ERROR(transport_.Exchange(peer, std::as_bytes(std::span(description)), {}));
  return transport_.Exchange(peer, file, {});
}

Result<FinishedChunk> RankLayers::Receive(FileSystem& fs, const Path& root, std::uint32_t peer,
                                          std::uint64_t chunk) {
  const auto corrupt = [&](std::string_view what) {
    return Fail(Status::Corruption(fmt::format(
        "rank {} ({}) sent {} instead of chunk {} of a layer: the ranks do not make the same calls",
        peer, transport_.HostOf(peer), what, chunk)));
  };
  ChunkHead head{};
  RHIZOME_RETURN_IF_ERROR(transport_.Exchange(peer, {}, head));
  const auto described = LoadLittle<std::uint64_t>(head.data());
  const auto bytes = LoadLittle<std::uint64_t>(head.data() + 8);
  if (described > kMaxDescription || bytes > kMaxMessageBytes)
    return corrupt(fmt::format("a description of {} and a file of {} bytes", described, bytes));
  std::string description(described, '\0');
  std::vector<std::byte> file(bytes);
  RHIZOME_RETURN_IF_ERROR(
      transport_.Exchange(peer, {}, std::as_writable_bytes(std::span(description))));
  RHIZOME_RETURN_IF_ERROR(transport_.Exchange(peer, {}, file));
  const Result<DecodedFinished> decoded = DecodeFinished(description);
  if (!decoded || decoded->chunk != chunk) return corrupt("another description");
  const FileEntry& entry = decoded->finished.file;
  // LayerOutput::Adopt checks that the path belongs to the array. Here it must not lead out of
  // `root`.
  if (Path(entry.path).is_absolute() || entry.path.find("..") != std::string::npos)
    return corrupt("a file outside its folder");
  if (file.size() != entry.size_bytes || Xxh3(file) != entry.xxh3)
    return corrupt("a file that does not match its description");
  const Status removed = fs.RemoveFile(root / entry.path);
  if (!removed.ok() && removed.code() != StatusCode::kNotFound) return Fail(removed);
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs, root / entry.path, file));
  return decoded->finished;
}

Status RankLayers::Exchange(
    FileSystem& fs, const Path& root, std::uint64_t chunks,
    const std::map<std::uint64_t, FinishedChunk>& own,
    const std::function<Status(std::uint64_t, const FinishedChunk&)>& adopt) {
  const std::uint32_t rank = transport_.rank(), ranks = transport_.ranks();
  const Chunks mine = Own(chunks);
  RHIZOME_CHECK(own.size() == mine.end - mine.begin);
  for (std::uint32_t turn = 1; turn < ranks; ++turn) {
    const std::uint32_t to = (rank + turn) % ranks, from = (rank + ranks - turn) % ranks;
    Chunks theirs = ChunksOf(from, chunks);
    auto next = own.begin();
    while (next != own.end() || theirs.begin < theirs.end) {
      if (next != own.end()) {
        RHIZOME_RETURN_IF_ERROR(Send(fs, root, to, next->first, next->second));
        ++next;
      }
      if (theirs.begin < theirs.end) {
        RHIZOME_ASSIGN_OR_RETURN(const FinishedChunk finished,
                                 Receive(fs, root, from, theirs.begin));
        RHIZOME_RETURN_IF_ERROR(adopt(theirs.begin++, finished));
      }
    }
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
