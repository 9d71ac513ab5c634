#pragma once

#include <cstdint>
#include <optional>

#include "rhizome/index/graph_builder.h"
#include "rhizome/index/ingest_options.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store_id.h"

namespace RHIZOME_API rhizome {

/// Reads input files and writes them as a new store at `path`; nothing is there unless it returns
/// OK.
///
/// Where the input fits in memory_bytes (or there is no limit) it is held there. Otherwise it goes
/// through spill files below the store's scratch folder: edges, ids numbered by an external sort,
/// arrays permuted through buckets; if the edges do not fit even once read, each partition must fit
/// by itself, and a partitioner that sees all edges at once (refined, adadne, dne) passes over the
/// spilled ones if ExpansionBytes fit, else gives way to hdrf. What stays in memory:
/// kBuildBytesPerVertex, the nodes file's ids (unless they are 0, 1, 2, ...) and columns. Both ways
/// give the same bytes where the partitioner is the same.
///
/// Ids: if all are canonical decimals they are integers, else strings. Integers that are exactly
/// 0..n-1 (those of --vertices, and rows of arrays without a nodes file, included) are the vertex
/// ids; others are numbered at first sight: nodes file, then edges, src before dst.
/// Types: names (numbers too) that CheckName accepts, numbered at first sight; without a type
/// column there is one vertex type "vertex" and one edge type "edge". A vertex that the typed nodes
/// file does not list is of type "unknown". Node columns become arrays: label int64 [rows, 1] (-1:
/// none), split uint8 [rows, 1] (0 train, 1 valid, 2 test, 255 none), unknown names as int64 or
/// float32 if every value parses as one, or uint8 if they are split words (other strings are
/// refused; "name" and "-" are skipped). Row i of an array file belongs to line i of the nodes file
/// (bad lines included), or to integer id i without one; vertices that only edges name have there
/// what FillMissingRows says. Errors: kInvalidArgument naming file, line and reason; kNotFound;
/// kAlreadyExists; kOutOfSpace; kOutOfMemory, saying what would do; kInterrupted.
Result<IngestReport> Ingest(FileSystem& fs, const Path& path, const IngestOptions& options,
                            const JobControl& control);

/// Writes `input` as a new store at `path`: what Ingest and the importers end with.
Result<IngestReport> IngestGraph(FileSystem& fs, const Path& path, GraphInput input,
                                 const BuildOptions& build, std::optional<StoreId> store_id,
                                 const JobControl& control);

}  // namespace rhizome
