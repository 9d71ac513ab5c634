#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/gnn/layer_sharing.h"
#include "rhizome/storage/transport.h"

namespace rhizome::inline internal {

/// Completes scores of which each rank has some, and no number for the others, on all ranks.
Status ShareScores(Transport& transport, ScoreTable& scores);

/// Ranks that compute the layers of a run together. Each has consecutive chunks, as many as the
/// others or one more. Chunks go around in turns: in the k-th a rank sends to the k-th after it,
/// and receives from the k-th before it, so that a rank holds one that came, and no more wait on
/// the way than the ranks are apart.
/// Ownership: `transport` must outlive it.
class RankLayers final : public LayerSharing {
 public:
  explicit RankLayers(Transport& transport) : transport_(transport) {}

  std::uint32_t processes() const override { return transport_.ranks(); }
  Chunks Own(std::uint64_t chunks) const override { return ChunksOf(transport_.rank(), chunks); }
  Status Exchange(FileSystem& fs, const Path& root, std::uint64_t chunks,
                  const std::map<std::uint64_t, FinishedChunk>& own,
                  const std::function<Status(std::uint64_t, const FinishedChunk&)>& adopt) override;
  Status ShareScores(ScoreTable& scores) override {
    return internal::ShareScores(transport_, scores);
  }

 private:
  Chunks ChunksOf(std::uint32_t rank, std::uint64_t chunks) const;
  Status Send(FileSystem& fs, const Path& root, std::uint32_t peer, std::uint64_t chunk,
              const FinishedChunk& finished);
  Result<FinishedChunk> Receive(FileSystem& fs, const Path& root, std::uint32_t peer,
                                std::uint64_t chunk);

  Transport& transport_;
};

}  // namespace rhizome::inline internal
