#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gnn/infer/layer_sharing.h"
#include "rhizome/transport.h"

namespace rhizome {
inline namespace internal {

/// Completes the scores on all ranks. Each rank has some of them, and NaN in place of the others.
Status ShareScores(Transport& transport, ScoreTable& scores);

/// Ranks that compute the layers of a run together. Each rank computes consecutive chunks; the
/// numbers of chunks differ by at most one. Ranks exchange chunks in turns: in turn k, a rank sends
/// its chunks to the k-th rank after it, and receives chunks from the k-th rank before it. So a
/// rank holds one received chunk at a time, and no more chunks are in transit than one rank is
/// ahead of another.
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

}  // namespace internal
}  // namespace rhizome
