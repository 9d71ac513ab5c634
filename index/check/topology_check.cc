// Checks the order, the external ids and the partitions of a generation. The ids are checked on a
// separate thread while the partitions are loaded and added to a TopologyVerifier, a bounded number
// at a time. If the sums of the verifier differ, the partitions are read again to find the wrong
// claims.

#include "index/check/topology_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "index/base/task_runner.h"
#include "index/check/verify_ends.h"
#include "index/check/verify_topology.h"
#include "index/delta/graph_parse.h"
#include "index/generation/row_coordinates.h"
#include "storage/base/damage.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"
#include "storage/store/store_files.h"

namespace rhizome {
inline namespace internal {
namespace {

/// One run of CheckTopology.
class TopologyCheck {
 public:
  TopologyCheck(const Manifest& manifest, GenerationFiles& files, const JobControl& control)
      : manifest_(manifest),
        files_(files),
        control_(control),
        ends_(manifest.info.edge_types.size()) {}

  Result<TopologyFindings> Run();

 private:
  Status CheckIds();
  Status CheckRowCoordinates(const VertexOrder& order);
  Status CheckPartitions(const VertexOrder& order);
  Status CheckOne(const VertexOrder& order, std::uint32_t partition, TopologyVerifier& verifier);
  void CollectEnds(const VertexOrder& order, const Adjacency& adjacency);
  void CheckEnds();
  Status NameWrongClaims(const VertexOrder& order, const TopologyVerifier& verifier);
  Result<Adjacency> Load(const VertexOrder& order, std::uint32_t partition) const;
  std::uint32_t Threads() const;
  Status Note(const std::string& file, const Status& status) {
    if (status.ok() || !ProvesDamage(status)) return status;
    findings_.damaged.push_back({file, status.message()});
    return Status::Ok();
  }

  const Manifest& manifest_;
  GenerationFiles& files_;
  const JobControl& control_;
  TopologyFindings findings_;
  std::optional<VertexIds> ids_;      // unset if they are damaged
  std::vector<Status> of_partition_;  // damage; each entry is written by the task of its partition
  Mutex ends_mutex_;
  EndsOfEdges ends_ RHIZOME_GUARDED_BY(ends_mutex_);  // of all partitions, if the manifest has ends
};

Status TopologyCheck::CheckIds() {
  if (manifest_.info.id_kind == ExternalIdKind::kDense) {
    ids_ = VertexIds::Dense(manifest_.info.vertices);
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(auto file, files_.Load(kVertexIdsPath, FileKind::kVertexIds));
  RHIZOME_ASSIGN_OR_RETURN(ids_, ParseVertexIds(std::move(file), manifest_.info));
  return Status::Ok();
}

Status TopologyCheck::CheckRowCoordinates(const VertexOrder& order) {
  return CheckCoordinates(manifest_, order, *ids_, control_,
                          [&](const std::string& file, const std::string& what) {
                            findings_.damaged.push_back({file, what});
                          });
}

Result<Adjacency> TopologyCheck::Load(const VertexOrder& order, std::uint32_t partition) const {
  RHIZOME_ASSIGN_OR_RETURN(auto file, files_.Load(PartitionPath(partition), FileKind::kPartition));
  return ParsePartition(std::move(file), manifest_.info, order, partition);
}

// Returns one thread a processor, limited by the memory for the largest partition.
std::uint32_t TopologyCheck::Threads() const {
  std::uint64_t largest = 1;
  for (std::uint32_t p = 0; p < manifest_.info.partitions; ++p) {
    const FileEntry* file = manifest_.FindFile(PartitionPath(p));
    if (file != nullptr) largest = std::max(largest, file->size_bytes);
  }
  const std::uint64_t room = std::max<std::uint64_t>(kTopologyCheckBytes / largest, 1);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>({room, std::max(std::thread::hardware_concurrency(), 1U),
                               std::max(manifest_.info.partitions, 1U)}));
}

Result<TopologyFindings> TopologyCheck::Run() {
  Thread beside;
  RHIZOME_RETURN_IF_ERROR(beside.Start([this] { return CheckIds(); }));
  auto file = files_.Load(kOrderPath, FileKind::kOrder);
  auto order =
      file ? ParseOrder(*std::move(file), manifest_.info) : Result<VertexOrder>(Fail(file.error()));
  // Without the order, partitions cannot be interpreted; VerifyFiles has read their bytes.
  const Status partitions = order ? CheckPartitions(*order) : Status::Ok();
  const Status ids = beside.Join();
  std::vector<TopologyFindings::Finding> later = std::exchange(findings_.damaged, {});
  RHIZOME_RETURN_IF_ERROR(Note(kVertexIdsPath, ids));
  if (!order) RHIZOME_RETURN_IF_ERROR(Note(kOrderPath, order.error()));
  RHIZOME_RETURN_IF_ERROR(partitions);
  std::move(later.begin(), later.end(), std::back_inserter(findings_.damaged));
  if (order && ids_) RHIZOME_RETURN_IF_ERROR(CheckRowCoordinates(*order));
  return std::move(findings_);
}

Status TopologyCheck::CheckOne(const VertexOrder& order, std::uint32_t partition,
                               TopologyVerifier& verifier) {
  {
    const auto adjacency = Load(order, partition);
    if (adjacency) {
      verifier.Add(partition, *adjacency);
      CollectEnds(order, *adjacency);
    } else {
      if (!ProvesDamage(adjacency.error())) return adjacency.error();
      of_partition_[partition] = adjacency.error();
    }
  }
  files_.Release(PartitionPath(partition));
  return Status::Ok();
}

void TopologyCheck::CollectEnds(const VertexOrder& order, const Adjacency& adjacency) {
  if (!ClaimsEnds(manifest_.info)) return;
  const EndsOfEdges ends = EndsIn(adjacency, order, manifest_.info);
  const MutexLock lock(ends_mutex_);
  ends_.AddAll(ends);
}

// Compares the ends of edge types in the manifest with the edges of all partitions.
void TopologyCheck::CheckEnds() {
  const MutexLock lock(ends_mutex_);
  std::string wrong = WrongEnds(manifest_.info, ends_);
  if (!wrong.empty())
    findings_.damaged.push_back({ManifestName(manifest_.version), std::move(wrong)});
}

Status TopologyCheck::CheckPartitions(const VertexOrder& order) {
  const std::uint32_t partitions = manifest_.info.partitions;
  TopologyVerifier verifier(manifest_.info);
  of_partition_.resize(partitions);
  RHIZOME_RETURN_IF_ERROR(
      TaskRunner(partitions, "verify topology", control_).Run(Threads(), [&](std::uint64_t task) {
        return CheckOne(order, static_cast<std::uint32_t>(task), verifier);
      }));
  bool complete = true;
  std::uint64_t edges = 0;
  for (std::uint32_t p = 0; p < partitions; ++p) {
    findings_.edges.push_back(verifier.edges_of(p));
    complete = complete && findings_.edges.back().has_value();
    edges += findings_.edges.back().value_or(0);
    RHIZOME_RETURN_IF_ERROR(Note(PartitionPath(p), of_partition_[p]));
    if (!verifier.SidesAgree(p))
      findings_.damaged.push_back(
          {PartitionPath(p), "in-lists: not the same edges as in the out-lists"});
  }
  if (!complete) return Status::Ok();  // with partitions missing, the sums would blame sound files
  if (edges != manifest_.info.edges)
    findings_.damaged.push_back(
        {"topology", fmt::format("the partitions hold {} edges, but the manifest says {}", edges,
                                 manifest_.info.edges)});
  CheckEnds();
  RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
  return verifier.ClaimsHold() ? Status::Ok() : NameWrongClaims(order, verifier);
}

// Finds the wrong claims. This is rare, so it reads the partitions again.
Status TopologyCheck::NameWrongClaims(const VertexOrder& order, const TopologyVerifier& verifier) {
  for (std::uint32_t p = 0; p < manifest_.info.partitions; ++p) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    const auto adjacency = Load(order, p);
    std::string wrong;
    if (adjacency) wrong = verifier.WrongClaim(*adjacency);
    files_.Release(PartitionPath(p));
    if (!adjacency) RHIZOME_RETURN_IF_ERROR(Note(PartitionPath(p), adjacency.error()));
    if (!wrong.empty()) findings_.damaged.push_back({PartitionPath(p), std::move(wrong)});
  }
  return Status::Ok();
}

}  // namespace

Result<TopologyFindings> CheckTopology(const Manifest& manifest, GenerationFiles& files,
                                       const JobControl& control) {
  return TopologyCheck(manifest, files, control).Run();
}

}  // namespace internal
}  // namespace rhizome
