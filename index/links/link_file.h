#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// How files of edges are read.
struct LinkFileOptions {
  /// The columns of the files: src, dst, type, or - for any other. Empty: found as by ingestion,
  /// and by the names of the store's edge types; in .npy, src,dst,type.
  std::vector<std::string> columns = {};
  std::uint64_t max_bad_lines = 0;  ///< lines with unknown ids or types that are skipped
};

/// Opens files of edges, in the forms that ingestion reads: text, or .npy, int64 [m, 2] or [m, 3]
/// whose third column has the numbers of edge types; plain or compressed. Ends are external ids,
/// types the names of edge types.
/// Ownership: `graph` must outlive the reader and its sources; the sources share the count of bad
/// lines.
class LinkFiles {
 public:
  LinkFiles(const GraphSnapshot& graph, LinkFileOptions options)
      : graph_(graph), options_(std::move(options)) {}

  /// Errors: kNotFound; kInvalidArgument, the file has no edges of this store; kIoError. Errors of
  /// the source also name the file and the line.
  Result<PairSource> Open(const std::string& path) const;

  std::uint64_t bad_lines() const { return *bad_lines_; }

 private:
  Result<PairSource> OpenNpy(const std::string& path) const;

  const GraphSnapshot& graph_;
  const LinkFileOptions options_;
  const std::shared_ptr<std::uint64_t> bad_lines_ = std::make_shared<std::uint64_t>(0);
};

/// Reads all edges of a file. Memory: 24 bytes an edge. Errors: as LinkFiles::Open and its source.
Result<std::vector<VertexPair>> ReadLinks(const GraphSnapshot& graph, const Path& path);

/// Vertices of a file, and how many a line or row has.
struct VertexFile {
  VertexSource next;
  std::uint64_t per_line = 0;
};

/// Opens a file of external ids: text with the same number of ids in each line, or .npy, int64 [m]
/// or [m, k]. "-" is standard input.
/// Errors: as LinkFiles::Open.
Result<VertexFile> OpenVertices(const GraphSnapshot& graph, const std::string& path);

}  // namespace internal
}  // namespace rhizome
